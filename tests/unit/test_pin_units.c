/* The units of imported memory that are pinned, and their order. */
#include "daemon/core/memory/pin_units.h"

#include "tests/check.h"

static struct extent bytes(uint64_t begin, uint64_t end)
{
    return (struct extent){begin, end};
}

static size_t begun(struct pin_units *pin_units)
{
    size_t unit = SIZE_MAX;
    CHECK_EQ(pin_units_begin(pin_units, 1, &unit), 1);
    return unit;
}

static void one_after_the_other(void)
{
    struct pin_units pin_units;
    size_t unit;
    CHECK_EQ(pin_units_init(&pin_units, 2 * PIN_UNIT_BYTES + 1), 0);
    CHECK_EQ(pin_units.left, 3);
    CHECK_EQ(begun(&pin_units), 0);
    CHECK_EQ(begun(&pin_units), 1);
    CHECK_EQ(begun(&pin_units), 2);
    CHECK_EQ(pin_units_begin(&pin_units, 1, &unit), 0);
    pin_units_note(&pin_units, 1);
    CHECK(pin_units_is_pinned(&pin_units, 1) && !pin_units_is_pinned(&pin_units, 0));
    CHECK_EQ(pin_units.left, 2);
    pin_units_finish(&pin_units);
}

static void what_is_covered(void)
{
    struct pin_units pin_units;
    CHECK_EQ(pin_units_init(&pin_units, 3 * PIN_UNIT_BYTES), 0);
    for (int i = 0; i < 2; i++)
        pin_units_note(&pin_units, begun(&pin_units));
    CHECK(pin_units_cover(&pin_units, bytes(0, 2 * PIN_UNIT_BYTES)));
    CHECK(pin_units_cover(&pin_units, bytes(2 * PIN_UNIT_BYTES - 1, 2 * PIN_UNIT_BYTES)));
    CHECK(!pin_units_cover(&pin_units, bytes(2 * PIN_UNIT_BYTES - 1, 2 * PIN_UNIT_BYTES + 1)));
    CHECK(!pin_units_cover(&pin_units, bytes(0, 3 * PIN_UNIT_BYTES)));
    CHECK(pin_units_cover(&pin_units, bytes(3 * PIN_UNIT_BYTES, 3 * PIN_UNIT_BYTES))); /* nothing at all */
    pin_units_finish(&pin_units);
}

/* Units pinned out of order count, and are not looked at again once all units before them are pinned, too. */
static void the_front_passes_what_is_pinned(void)
{
    struct pin_units pin_units;
    CHECK_EQ(pin_units_init(&pin_units, 4 * PIN_UNIT_BYTES), 0);
    for (int i = 0; i < 4; i++)
        begun(&pin_units);
    pin_units_note(&pin_units, 2);
    pin_units_note(&pin_units, 1);
    CHECK_EQ(pin_units.front, 0);
    CHECK(!pin_units_cover(&pin_units, bytes(0, 3 * PIN_UNIT_BYTES)));
    CHECK(pin_units_cover(&pin_units, bytes(PIN_UNIT_BYTES, 3 * PIN_UNIT_BYTES)));
    pin_units_note(&pin_units, 0);
    CHECK_EQ(pin_units.front, 3);
    CHECK(pin_units_cover(&pin_units, bytes(0, 3 * PIN_UNIT_BYTES)));
    CHECK(!pin_units_cover(&pin_units, bytes(PIN_UNIT_BYTES, 4 * PIN_UNIT_BYTES)));
    pin_units_note(&pin_units, 3);
    CHECK_EQ(pin_units.front, 4);
    pin_units_finish(&pin_units);
}

static void what_is_wanted_comes_first(void)
{
    struct pin_units pin_units;
    CHECK_EQ(pin_units_init(&pin_units, 6 * PIN_UNIT_BYTES), 0);
    CHECK_EQ(begun(&pin_units), 0);
    CHECK(!pin_units_cover(&pin_units, bytes(4 * PIN_UNIT_BYTES, 6 * PIN_UNIT_BYTES)));
    CHECK_EQ(begun(&pin_units), 4);
    CHECK_EQ(begun(&pin_units), 1); /* the wanted one has begun */
    CHECK(!pin_units_cover(&pin_units, bytes(3 * PIN_UNIT_BYTES, 4 * PIN_UNIT_BYTES)));
    CHECK(!pin_units_cover(&pin_units, bytes(2 * PIN_UNIT_BYTES, 3 * PIN_UNIT_BYTES)));
    CHECK_EQ(begun(&pin_units), 2); /* the latest wish */
    CHECK_EQ(begun(&pin_units), 3);
    CHECK_EQ(begun(&pin_units), 5);
    pin_units_finish(&pin_units);
}

/* Several units begin at once: those that follow each other and wait. */
static void several_at_once(void)
{
    struct pin_units pin_units;
    size_t first;
    CHECK_EQ(pin_units_init(&pin_units, 7 * PIN_UNIT_BYTES), 0);
    CHECK(!pin_units_cover(&pin_units, bytes(3 * PIN_UNIT_BYTES, 4 * PIN_UNIT_BYTES)));
    CHECK_EQ(begun(&pin_units), 3);
    CHECK_EQ(pin_units_begin(&pin_units, 2, &first), 2);
    CHECK_EQ(first, 0);
    CHECK_EQ(pin_units_begin(&pin_units, 4, &first), 1); /* up to the one that has begun */
    CHECK_EQ(first, 2);
    CHECK_EQ(pin_units_begin(&pin_units, 4, &first), 3); /* up to the end */
    CHECK_EQ(first, 4);
    CHECK_EQ(pin_units_begin(&pin_units, 4, &first), 0);
    pin_units_finish(&pin_units);
}

static const struct test tests[] = {
    TEST(one_after_the_other),
    TEST(several_at_once),
    TEST(what_is_covered),
    TEST(the_front_passes_what_is_pinned),
    TEST(what_is_wanted_comes_first),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}
