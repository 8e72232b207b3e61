/*
 * Banks of shared memory: 32 of four bytes each; what one wavefront can deliver is one word per bank. Measures how many
 * wavefronts a load of a warp takes, by the cycles that it needs next to those of the plainest one, and prints beside
 * it what the rule below says.
 */
#include <cuda_runtime.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "tests/bench/banks.h"
#include "tests/bench/bench.h"

#define BANKS 32

#define X(NAME, ELEMENT) {NAME, {0}},
static struct bank_pattern patterns[] = {BANK_PATTERNS(X)};
#undef X
#define PATTERN_COUNT (sizeof(patterns) / sizeof(patterns[0]))

static void patterns_fill(void)
{
    for (int t = 0; t < BANK_LANES; t++) {
#define X(NAME, ELEMENT) ELEMENT,
        const int elements[] = {BANK_PATTERNS(X)};
#undef X
        for (size_t i = 0; i < PATTERN_COUNT; i++)
            patterns[i].element[t] = elements[i];
    }
}

/* The most different words that lanes first <= t < first + lanes want from one bank. */
static int words_per_bank(const struct bank_pattern *pattern, int words, int first, int lanes)
{
    static bool wanted[BANK_SHARED_BYTES / 4];
    int most = 0;
    for (int i = 0; i < BANK_SHARED_BYTES / 4; i++)
        wanted[i] = false;
    for (int t = first; t < first + lanes; t++)
        for (int word = 0; word < words; word++)
            wanted[pattern->element[t] * words + word] = true;
    for (int bank = 0; bank < BANKS; bank++) {
        int count = 0;
        for (int i = bank; i < BANK_SHARED_BYTES / 4; i += BANKS)
            count += wanted[i];
        most = count > most ? count : most;
    }
    return most;
}

/* True when every lane wants the same element as the lane whose number differs in `bit`. */
static bool lanes_pair(const struct bank_pattern *pattern, int bit)
{
    for (int t = 0; t < BANK_LANES; t++)
        if (pattern->element[t] != pattern->element[t ^ bit])
            return false;
    return true;
}

/*
 * The rule. A load of 32 bits is served for all lanes together, one of 64 bits half a warp at a time, one of 128 bits a
 * quarter; twice as many lanes together if every lane of the warp shares its element with lane t xor 1, or every lane
 * with lane t xor 2. Lanes that are served together take as many wavefronts as the words that they want from one bank.
 */
static int wavefronts_expected(const struct bank_pattern *pattern, int words)
{
    int lanes = BANK_LANES / words, wavefronts = 0;
    if (words > 1 && (lanes_pair(pattern, 1) || lanes_pair(pattern, 2)))
        lanes *= 2;
    for (int first = 0; first < BANK_LANES; first += lanes)
        wavefronts += words_per_bank(pattern, words, first, lanes);
    return wavefronts;
}

static int width_measure(int bytes, double one)
{
    int error = 0;
    for (size_t i = 0; i < PATTERN_COUNT && !error; i++) {
        double cycles;
        error = bank_cycles(&patterns[i], bytes, &cycles);
        int measured = (int)lround(cycles / one), expected = wavefronts_expected(&patterns[i], bytes / 4);
        if (!error)
            printf("%4d  %-40s %8.2f  %10d  %8d%s\n", bytes * 8, patterns[i].name, cycles, measured, expected,
                   measured == expected ? "" : "  differs");
    }
    return error;
}

int bench_banks(void)
{
    double one = 1;
    patterns_fill();
    int error = bank_cycles(&patterns[0], 4, &one);
    printf("%4s  %-40s %8s  %10s  %8s\n", "bits", "lanes of a warp", "cycles", "wavefronts", "by rule");
    for (int bytes = 4; bytes <= 16 && !error; bytes *= 2)
        error = width_measure(bytes, one);
    if (error)
        fprintf(stderr, "bench_banks: %s\n", cudaGetErrorString((cudaError_t)error));
    else
        printf(
            "The rule: 32 bits are served for a warp at once, 64 for half of it, 128 for a quarter; for twice as many\n"
            "lanes where every lane shares its element with lane t xor 1, or every lane with lane t xor 2. Lanes "
            "served\n"
            "together take as many wavefronts as different words are wanted from one bank.\n");
    return error != 0;
}
