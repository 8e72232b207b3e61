/* Which pieces of imported memory are pinned, and in which order. */
#include "daemon/core/memory/pin_units.h"

#include "tests/check.h"

static struct extent bytes(uint64_t begin, uint64_t end)
{
    return (struct extent){begin, end};
}

static size_t begun(struct pieces *pieces)
{
    size_t piece = SIZE_MAX;
    CHECK(pieces_begin(pieces, &piece));
    return piece;
}

static void one_after_the_other(void)
{
    struct pieces pieces;
    size_t piece;
    CHECK_EQ(pieces_init(&pieces, 2 * PIECE_BYTES + 1), 0);
    CHECK_EQ(pieces.left, 3);
    CHECK_EQ(begun(&pieces), 0);
    CHECK_EQ(begun(&pieces), 1);
    CHECK_EQ(begun(&pieces), 2);
    CHECK(!pieces_begin(&pieces, &piece));
    pieces_note(&pieces, 1);
    CHECK(pieces_is_pinned(&pieces, 1) && !pieces_is_pinned(&pieces, 0));
    CHECK_EQ(pieces.left, 2);
    pieces_finish(&pieces);
}

static void what_is_covered(void)
{
    struct pieces pieces;
    CHECK_EQ(pieces_init(&pieces, 3 * PIECE_BYTES), 0);
    for (int i = 0; i < 2; i++)
        pieces_note(&pieces, begun(&pieces));
    CHECK(pieces_cover(&pieces, bytes(0, 2 * PIECE_BYTES)));
    CHECK(pieces_cover(&pieces, bytes(2 * PIECE_BYTES - 1, 2 * PIECE_BYTES)));
    CHECK(!pieces_cover(&pieces, bytes(2 * PIECE_BYTES - 1, 2 * PIECE_BYTES + 1)));
    CHECK(!pieces_cover(&pieces, bytes(0, 3 * PIECE_BYTES)));
    CHECK(pieces_cover(&pieces, bytes(3 * PIECE_BYTES, 3 * PIECE_BYTES))); /* nothing at all */
    pieces_finish(&pieces);
}

static void what_is_wanted_comes_first(void)
{
    struct pieces pieces;
    CHECK_EQ(pieces_init(&pieces, 6 * PIECE_BYTES), 0);
    CHECK_EQ(begun(&pieces), 0);
    CHECK(!pieces_cover(&pieces, bytes(4 * PIECE_BYTES, 6 * PIECE_BYTES)));
    CHECK_EQ(begun(&pieces), 4);
    CHECK_EQ(begun(&pieces), 1); /* the wanted one has begun */
    CHECK(!pieces_cover(&pieces, bytes(3 * PIECE_BYTES, 4 * PIECE_BYTES)));
    CHECK(!pieces_cover(&pieces, bytes(2 * PIECE_BYTES, 3 * PIECE_BYTES)));
    CHECK_EQ(begun(&pieces), 2); /* the latest wish */
    CHECK_EQ(begun(&pieces), 3);
    CHECK_EQ(begun(&pieces), 5);
    pieces_finish(&pieces);
}

static const struct test tests[] = {
    TEST(one_after_the_other),
    TEST(what_is_covered),
    TEST(what_is_wanted_comes_first),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}
