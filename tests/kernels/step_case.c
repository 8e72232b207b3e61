#include "tests/kernels/step_case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/kernels/step_cuda.h"

#define GUARD_BYTES 64

/* Sanitizers take ten times as long: of cases with more memory than LARGE_BYTES, one of so many is checked. Each has
 * its turn, as the seed says which. */
#define LARGE_BYTES 16384
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ONE_OF 8
#else
#define ONE_OF 1
#endif
#define OPERANDS (2 + STEP_FURTHER_MAX)

/* Memory of an operand, and the place of element 0 of row 0 in it. */
struct region {
    unsigned char *memory;
    size_t bytes;
    ptrdiff_t origin;
    struct step_operand operand; /* the operand without its origin */
};

struct world {
    const struct step_case *test_case;
    struct step_rows rows;
    struct region regions[OPERANDS]; /* input, output, further */
    unsigned char *expected[OPERANDS];
};

static struct step_operand *operand_of(struct step_rows *rows, unsigned i)
{
    return i == 0 ? &rows->input : i == 1 ? &rows->output : &rows->further[i - 2];
}

static const struct step_case_operand *asked_of(const struct step_case *test_case, unsigned i)
{
    return i == 0 ? &test_case->input : i == 1 ? &test_case->output : &test_case->further[i - 2];
}

/* The operand that the output is, too, or NULL. */
static struct step_operand *shared_with_output(const struct step_case *test_case, struct step_rows *rows)
{
    if (test_case->onto > 0)
        return &rows->further[test_case->onto - 1];
    return test_case->in_place ? &rows->input : NULL;
}

static bool is_given(const struct step_case *test_case, unsigned i)
{
    return i < 2 || test_case->further[i - 2].given;
}

/*
 * Layouts.
 */

/* Rows of a plane, planes, and elements of a row. */
struct shape {
    uint64_t rows, planes, length;
};

static struct shape shape_of(const struct step_case *test_case, const struct step_case_operand *asked)
{
    const uint64_t planes = test_case->planes > 0 ? test_case->planes : 1;
    if (test_case->offsets && asked->length == 0)
        return (struct shape){1, 1, test_case->offsets[test_case->row_count]};
    return (struct shape){test_case->row_count / planes, planes, asked->length};
}

/* Strides in bytes; where element 0 of row 0 lies in so many bytes. */
static void lay_out(struct region *region, const struct step_case_operand *asked, struct shape shape)
{
    const int64_t item = codec_bytes(asked->dtype);
    const int64_t rows = (int64_t)shape.rows, length = (int64_t)shape.length;
    int64_t stride = item, pitch = item * length, plane = 0;
    switch (asked->layout) {
    case LAYOUT_DENSE:
    case LAYOUT_COUNT:
        break;
    case LAYOUT_PITCHED:
        pitch += 240 + 1;
        break;
    case LAYOUT_COLUMNS:
        pitch = item;
        stride = item * rows;
        plane = item * rows * length;
        break;
    case LAYOUT_REVERSED:
        stride = -item;
        pitch = -item * length;
        break;
    case LAYOUT_SPACED:
        stride = 3 * item;
        pitch = 3 * item * length;
        break;
    case LAYOUT_SHARED:
        pitch = 0;
        plane = item * length;
        break;
    }
    plane = plane != 0 ? plane : pitch * rows;
    const int64_t last_row = rows > 0 ? (rows - 1) * pitch + ((int64_t)shape.planes - 1) * plane : 0;
    const int64_t last = length > 0 ? (length - 1) * stride : 0;
    region->origin = GUARD_BYTES + (last_row < 0 ? -last_row : 0) + (last < 0 ? -last : 0);
    region->bytes = (size_t)(2 * GUARD_BYTES + llabs(last_row) + llabs(last) + item);
    region->operand = (struct step_operand){
        .length = asked->length, .stride = stride, .outer_strides = {pitch}, .dtype = asked->dtype};
    if (shape.planes > 1) {
        region->operand.outer_strides[0] = plane;
        region->operand.outer_strides[1] = pitch;
    }
}

/*
 * Contents.
 */

static double noise(uint64_t *random)
{
    return (double)(int64_t)random_next(random) * 0x1p-63;
}

static double special(uint64_t *random)
{
    static const double specials[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, -NAN, 0x1p-149, 0x1p-140, 3e38, -3e38};
    const uint64_t choice = random_next(random);
    return choice % 16 ? noise(random) : specials[choice / 16 % (sizeof specials / sizeof specials[0])];
}

/* Returns a place from `low` on, as many samples further as `size` says at most, between samples or at one of them. */
static double place(double low, double size, uint64_t *random)
{
    const double at = low + size * 0.5 * (noise(random) + 1);
    return random_next(random) % 4 ? at : floor(at);
}

static double sample(const struct step_case_operand *asked, uint64_t *random)
{
    const double length = (double)asked->below;
    switch (asked->fill) {
    case STEP_PLACES:
        return place(-length / 16, length * 9 / 8, random);
    case STEP_WIDTHS:
        return place(-length / 100, length / 10, random);
    case STEP_NOISE:
        return noise(random);
    case STEP_SPECIALS:
        return special(random);
    case STEP_SPREAD:
        return ldexp(noise(random), (int)(random_next(random) % 40) - 20);
    case STEP_TINY:
        return random_next(random) % 2 ? 0x1p-100 : -0x1p-100;
    case STEP_ONES:
        return random_next(random) % 2 ? 1 : -1;
    }
    return 0;
}

/* Element i of a row of integers. */
static uint64_t integer(const struct step_case_operand *asked, uint64_t i, uint64_t *random)
{
    const uint64_t any = random_next(random), below = asked->below;
    if (below == 0)
        return any;
    switch (asked->order) {
    case STEP_ASCENDING:
        return i * below / asked->length;
    case STEP_DESCENDING:
        return below - 1 - i * below / asked->length;
    case STEP_EVEN:
        return any % below / 2 * 2;
    case STEP_SAME:
        return below / 2;
    case STEP_RANDOM:
    case STEP_ORDER_COUNT:
        break;
    }
    return any % below;
}

static void fill_element(const struct step_case_operand *asked, uint64_t i, uint64_t *random, char *at)
{
    if (codec_is_integer(asked->dtype))
        codec_encode_integer(asked->dtype, integer(asked, i, random), at);
    else
        step_put_f64(asked->dtype, sample(asked, random), at);
}

static void fill_region(struct region *region, const struct step_case_operand *asked, struct shape shape,
                        uint64_t *random)
{
    for (size_t i = 0; i < region->bytes; i++) /* neighbours differ, so that a byte that is moved shows */
        region->memory[i] = i < 7 ? (unsigned char)(0xa0 + i) : region->memory[i - 7];
    const int64_t *outer = region->operand.outer_strides;
    for (uint64_t r = 0; r < shape.rows * shape.planes; r++)
        for (uint64_t i = 0; i < shape.length; i++) {
            const int64_t row = shape.planes > 1
                                    ? (int64_t)(r / shape.rows) * outer[0] + (int64_t)(r % shape.rows) * outer[1]
                                    : (int64_t)r * outer[0];
            fill_element(asked, i, random,
                         (char *)region->memory + region->origin + row + (int64_t)i * region->operand.stride);
        }
}

/* Lays out the operands; world_fill makes their memory. */
static void world_create(struct world *world, const struct step_case *test_case)
{
    memset(world, 0, sizeof *world);
    world->test_case = test_case;
    world->rows = (struct step_rows){.row_count = test_case->row_count,
                                     .offsets = test_case->offsets,
                                     .outer_rank = 1,
                                     .outer_shape = {test_case->row_count}};
    if (test_case->planes > 1) {
        world->rows.outer_rank = 2;
        world->rows.outer_shape[0] = test_case->planes;
        world->rows.outer_shape[1] = test_case->row_count / test_case->planes;
    }
    for (unsigned i = 0; i < OPERANDS; i++) {
        const struct step_case_operand *asked = asked_of(test_case, i);
        struct region *region = &world->regions[i];
        if (!is_given(test_case, i))
            continue;
        lay_out(region, asked, shape_of(test_case, asked));
        region->operand.on_line = test_case->offsets && asked->length == 0;
    }
}

static void world_fill(struct world *world, uint64_t *random)
{
    for (unsigned i = 0; i < OPERANDS; i++) {
        const struct step_case_operand *asked = asked_of(world->test_case, i);
        struct region *region = &world->regions[i];
        if (!is_given(world->test_case, i))
            continue;
        region->memory = malloc(region->bytes);
        world->expected[i] = malloc(region->bytes);
        if (!region->memory || !world->expected[i])
            abort();
        fill_region(region, asked, shape_of(world->test_case, asked), random);
    }
}

static void world_destroy(struct world *world)
{
    for (unsigned i = 0; i < OPERANDS; i++) {
        free(world->regions[i].memory);
        free(world->expected[i]);
    }
}

/*
 * Implementations, each on copies of the regions.
 */

struct copies {
    unsigned char *memory[OPERANDS];
    struct step_rows rows;
};

static struct copies copies_create(const struct world *world)
{
    struct copies copies = {.rows = world->rows};
    for (unsigned i = 0; i < OPERANDS; i++) {
        const struct region *region = &world->regions[i];
        if (!region->memory)
            continue;
        copies.memory[i] = malloc(region->bytes);
        if (!copies.memory[i])
            abort();
        memcpy(copies.memory[i], region->memory, region->bytes);
        struct step_operand *operand = operand_of(&copies.rows, i);
        *operand = region->operand;
        operand->origin = (char *)copies.memory[i] + region->origin;
    }
    const struct step_operand *shared = shared_with_output(world->test_case, &copies.rows);
    if (shared)
        copies.rows.output = *shared;
    return copies;
}

static void copies_destroy(struct copies *copies)
{
    for (unsigned i = 0; i < OPERANDS; i++)
        free(copies->memory[i]);
}

static void run_tiles(const struct step_case *test_case, step_run *run, const struct step_rows *rows,
                      const struct step_tiles *tiles)
{
    /* One for all, and not on the heap, where a sanitizer would map it anew for each run. */
    static _Alignas(64) unsigned char scratch[STEP_SCRATCH_BYTES];
    memset(scratch, 0x5a, sizeof scratch);
    for (uint64_t t = tiles->tile_count; t-- > 0;) {
        const struct step_tile tile = step_tile_at(tiles, t);
        run(rows, test_case->params, &tile, scratch);
    }
}

static struct step_tiles all_tiles(const struct step_case *test_case, const struct step_rows *rows)
{
    return step_tiles_of(test_case->kernel, rows, test_case->params, 0, test_case->row_count);
}

static void run_reference(const struct step_case *test_case, const struct step_rows *rows)
{
    const struct step_tile whole = {0, test_case->row_count, 0, UINT64_MAX};
    test_case->kernel->reference(rows, test_case->params, &whole, NULL);
}

/* Tiles of an odd size: results do not depend on it. */
static void run_odd_tiles(const struct step_case *test_case, step_run *run, const struct step_rows *rows)
{
    struct step_tiles tiles = all_tiles(test_case, rows);
    if (tiles.tile_count == 0)
        return;
    tiles.tiling.rows = tiles.tiling.rows > 1 ? tiles.tiling.rows - 1 : 1;
    if (!rows->offsets && tiles.tiling.elements < tiles.length && tiles.tiling.elements > 1)
        tiles.tiling.elements--;
    tiles.per_row = tiles.length / tiles.tiling.elements + (tiles.length % tiles.tiling.elements > 0);
    tiles.tile_count = (tiles.count + tiles.tiling.rows - 1) / tiles.tiling.rows * tiles.per_row;
    run_tiles(test_case, run, rows, &tiles);
}

static bool always(void *context)
{
    (void)context;
    return true;
}

static void run_in_turns(const struct step_case *test_case, const struct step_rows *rows)
{
    static struct cpu_pool *pool;
    if (!pool)
        pool = cpu_pool_create(3);
    struct step_task *task = pool ? step_task_create(pool, test_case->kernel, rows, test_case->params,
                                                     test_case->params_bytes, 0, test_case->row_count)
                                  : NULL;
    if (!task)
        abort();
    while (step_task_run(task, always, NULL))
        ;
    step_task_destroy(task);
}

static void print_difference(const struct world *world, const struct copies *copies, unsigned operand, const char *name)
{
    const struct region *region = &world->regions[operand];
    const struct step_case *c = world->test_case;
    const unsigned char *found = copies->memory[operand], *expected = world->expected[operand];
    size_t at = 0;
    while (found[at] == expected[at])
        at++;
    fprintf(stderr,
            "%s of %s: operand %u differs at byte %zu of %zu (element 0 at %td, stride %" PRId64 ", pitch %" PRId64
            "): %02x instead of %02x; %" PRIu64 " rows, input of %" PRIu64 " %u layout %u fill %u, output of %" PRIu64
            " %u layout %u\n",
            name, c->kernel->name, operand, at, region->bytes, region->origin, region->operand.stride,
            region->operand.outer_strides[0], found[at], expected[at], c->row_count, c->input.length, c->input.dtype,
            c->input.layout, c->input.fill, c->output.length, c->output.dtype, c->output.layout);
}

static bool compare(const struct world *world, const struct copies *copies, const char *name)
{
    for (unsigned i = 0; i < OPERANDS; i++)
        if (copies->memory[i] && memcmp(copies->memory[i], world->expected[i], world->regions[i].bytes) != 0) {
            print_difference(world, copies, i, name);
            return false;
        }
    return true;
}

static bool check_cpu(const struct world *world)
{
    const struct step_case *test_case = world->test_case;
    bool same = true;
    for (size_t i = 0; i < scan_cpu_build_count && same; i++) {
        if (!scan_cpu_builds[i].available())
            continue;
        struct copies copies = copies_create(world);
        const struct step_tiles tiles = all_tiles(test_case, &copies.rows);
        run_tiles(test_case, test_case->kernel->cpu[i], &copies.rows, &tiles);
        same = compare(world, &copies, scan_cpu_builds[i].name);
        copies_destroy(&copies);
        copies = copies_create(world);
        run_odd_tiles(test_case, test_case->kernel->cpu[i], &copies.rows);
        same = same && compare(world, &copies, "other tiles");
        copies_destroy(&copies);
    }
    struct copies copies = copies_create(world);
    run_in_turns(test_case, &copies.rows);
    same = same && compare(world, &copies, "a pool of 3, in turns");
    copies_destroy(&copies);
    return same;
}

static bool check_cuda(const struct world *world, bool mapped)
{
    const struct step_case *test_case = world->test_case;
    struct copies copies = copies_create(world);
    struct step_operand *const shared = shared_with_output(test_case, &copies.rows);
    struct step_cuda_memory memory[OPERANDS] = {0};
    for (unsigned i = 0; i < OPERANDS; i++)
        if (copies.memory[i])
            memory[i] = (struct step_cuda_memory){copies.memory[i], world->regions[i].bytes,
                                                  i == 1 && shared ? NULL : operand_of(&copies.rows, i)};
    const char *error = step_cuda_run(test_case->kernel, test_case->launch, test_case->params, &copies.rows, shared,
                                      memory, OPERANDS, mapped);
    if (error)
        fprintf(stderr, "cuda of %s: %s\n", test_case->kernel->name, error);
    const bool same = !error && compare(world, &copies, mapped ? "cuda, mapped memory" : "cuda");
    copies_destroy(&copies);
    return same;
}

bool step_case_has_cuda(void)
{
    return step_cuda_is_available();
}

static bool is_left_out(const struct world *world, uint64_t *random)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < OPERANDS; i++)
        bytes += world->regions[i].bytes;
    return bytes > LARGE_BYTES && random_next(random) % ONE_OF > 0;
}

bool step_case_check(const struct step_case *test_case, uint64_t *random)
{
    struct world world;
    world_create(&world, test_case);
    if (is_left_out(&world, random))
        return true;
    world_fill(&world, random);
    struct copies expected = copies_create(&world);
    run_reference(test_case, &expected.rows);
    for (unsigned i = 0; i < OPERANDS; i++)
        if (expected.memory[i])
            memcpy(world.expected[i], expected.memory[i], world.regions[i].bytes);
    copies_destroy(&expected);
    bool same = check_cpu(&world);
    if (same && step_cuda_is_available())
        same = check_cuda(&world, false) && check_cuda(&world, true);
    world_destroy(&world);
    return same;
}
