/* The patterns of shared-memory access that the bank benchmark measures. */
#ifndef TESTS_BENCH_BANKS_H
#define TESTS_BENCH_BANKS_H

#ifdef __cplusplus
extern "C" {
#endif

#define BANK_LANES        32
#define BANK_SHARED_BYTES 16384

// clang-format off
/*
 * The element that lane t loads; elements are as wide as the access. A "quarter" is of a warp: 8 lanes. name
 * element */
#define BANK_PATTERNS(X)                              \
    X("stride 1",                          t)         \
    X("stride 2",                          t * 2)     \
    X("stride 4",                          t * 4)     \
    X("stride 32",                         t * 32)    \
    X("stride 1, backwards",               31 - t)    \
    X("all lanes one element",             0)         \
    X("pairs (t, t xor 1) share",          t / 2)     \
    X("pairs (t, t xor 2) share",          t % 2 + t / 4 * 2)   \
    X("pairs (t, t xor 4) share",          t % 4 + t / 8 * 4)   \
    X("pairs (t, t xor 8) share",          t % 8 + t / 16 * 8)  \
    X("pairs (t, t xor 16) share",         t % 16)    \
    X("fours share",                       t / 4)     \
    X("quarters share: one element each",  t / 8)     \
    X("halves share: one element each",    t / 16)    \
    X("quarters alike",                    t % 8)     \
    X("evens stride 1, odds element 0",    t % 2 ? 0 : t) \
    X("first half stride 1, second element 0",     t < 16 ? t : 0)     \
    X("first half pairs xor 1, second stride 1",   t < 16 ? t / 2 : t) \
    X("first half pairs xor 1, second xor 2",      t < 16 ? t / 2 : t % 2 + t / 4 * 2) \
    X("lane 31 alone does not share",              t == 31 ? 16 : t / 2)
// clang-format on

struct bank_pattern {
    const char *name;
    int element[BANK_LANES];
};

/*
 * Measures clock cycles per load of a warp, `bytes` (4, 8 or 16) per lane, on a processor that does nothing else.
 * Returns a cudaError_t.
 */
int bank_cycles(const struct bank_pattern *pattern, int bytes, double *cycles);

#ifdef __cplusplus
}
#endif

#endif
