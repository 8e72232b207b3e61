/*
 * Runs a fuzz target without a fuzzer: fuzz_replay FILE|FOLDER... feeds it each file, and then random mutations of
 * them.
 *
 * TEST_SEED repeats a run; TEST_ROUNDS says how many mutations. An input that ends the program is left in
 * fuzz_crash.bin when the build has no sanitizer, and can be given as an argument.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/replay.h"

#define INPUTS_MOST 4096
#if defined(__SANITIZE_ADDRESS__)
#define ROUNDS 20000 /* each takes several times as long */
#else
#define ROUNDS 100000
#endif

static struct replay_input *inputs[INPUTS_MOST];
static size_t input_count;
static struct replay_input current;

static void on_abort(int number)
{
    FILE *file = fopen("fuzz_crash.bin", "wb"); /* not safe in a handler, and better than nothing on the way out */
    if (file) {
        fwrite(current.bytes, 1, current.size, file);
        fclose(file);
    }
    signal(number, SIG_DFL);
    raise(number);
}

struct replay_input *replay_add(void)
{
    struct replay_input *input = input_count < INPUTS_MOST ? calloc(1, sizeof *input) : NULL;
    if (!input) {
        fprintf(stderr, "no room for more than %zu inputs\n", input_count);
        exit(1);
    }
    return inputs[input_count++] = input;
}

/* A byte that means something in MessagePack more often than not. */
static uint8_t telling_byte(uint64_t *seed)
{
    static const uint8_t telling[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc4, 0xc6, 0xc7,
                                      0xca, 0xcb, 0xcc, 0xcf, 0xd3, 0xd4, 0xd8, 0xd9, 0xdb, 0xdc, 0xdd, 0xdf, 0xff};
    return random_next(seed) % 2 ? telling[random_next(seed) % sizeof telling] : (uint8_t)random_next(seed);
}

/* One change: a bit, a byte, bytes removed, bytes repeated, a piece of another message, or the end cut off. */
static void mutate(struct replay_input *input, uint64_t *seed)
{
    if (input->size == 0)
        input->bytes[input->size++] = telling_byte(seed);
    size_t at = random_next(seed) % input->size, count = 1 + random_next(seed) % 16, rest = input->size - at;
    const struct replay_input *other = inputs[random_next(seed) % input_count];
    size_t from = other->size ? random_next(seed) % other->size : 0;
    count = count < rest ? count : rest;
    switch (random_next(seed) % 6) {
    case 0:
        input->bytes[at] ^= (uint8_t)(1u << random_next(seed) % 8);
        break;
    case 1:
        input->bytes[at] = telling_byte(seed);
        break;
    case 2:
        memmove(input->bytes + at, input->bytes + at + count, rest - count);
        input->size -= count;
        break;
    case 3:
        if (input->size + count > sizeof input->bytes)
            break;
        memmove(input->bytes + at + count, input->bytes + at, rest);
        input->size += count;
        break;
    case 4:
        count = count < other->size - from ? count : other->size - from;
        memcpy(input->bytes + at, other->bytes + from, count);
        break;
    default:
        input->size = random_next(seed) % 8 ? input->size : at;
    }
}

static void run(const struct replay_input *input)
{
    current = *input;
    LLVMFuzzerTestOneInput(current.bytes, current.size);
}

static void mutations_run(uint64_t seed, uint64_t rounds)
{
    for (uint64_t round = 0; round < rounds; round++) {
        struct replay_input input = *inputs[random_next(&seed) % input_count];
        for (uint64_t changes = random_next(&seed) % 6; changes > 0; changes--)
            mutate(&input, &seed);
        run(&input);
    }
}

static int add_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    struct replay_input *input = replay_add();
    input->size = fread(input->bytes, 1, sizeof input->bytes, file);
    int failed = ferror(file) || getc(file) != EOF;
    fclose(file);
    if (failed)
        fprintf(stderr, "%s: cannot be read, or has more than %zu bytes\n", path, sizeof input->bytes);
    return failed;
}

/* Seeds run in the order of their names, so that a seed number means the same input everywhere. */
static int add_folder(const char *path)
{
    struct dirent **entries;
    int failed = 0, count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            failed |= add_file(name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return failed || count < 0;
}

static int add_path(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode) ? add_folder(path) : add_file(path);
}

int main(int argc, char **argv)
{
    int failed = 0;
    signal(SIGABRT, on_abort);
    signal(SIGSEGV, on_abort);
    for (int i = 1; i < argc; i++)
        failed |= add_path(argv[i]);
    if (replay_seed)
        replay_seed();
    if (failed || input_count == 0) {
        fprintf(stderr, "fuzz_replay FILE|FOLDER...: inputs to run, at least one\n");
        return 1;
    }
    for (size_t i = 0; i < input_count; i++)
        run(inputs[i]);
    const char *rounds = getenv("TEST_ROUNDS");
    mutations_run(random_seed(), rounds ? strtoull(rounds, NULL, 0) : ROUNDS);
    printf("%zu inputs and their mutations, nothing wrong\n", input_count);
    return 0;
}
