/*
 * The instruction sets that code for processors is compiled for, best first: X(set, OF), where OF is the beginning of
 * the names. kernels/CMakeLists.txt says which sets there are; the last one runs everywhere.
 */
#ifndef KERNELS_CPU_SETS_H
#define KERNELS_CPU_SETS_H

#ifdef SCAND_CPU_AVX512
#define CPU_SET_AVX512(X, OF) X(avx512, OF)
#else
#define CPU_SET_AVX512(X, OF)
#endif
#ifdef SCAND_CPU_AVX2
#define CPU_SET_AVX2(X, OF) X(avx2, OF)
#else
#define CPU_SET_AVX2(X, OF)
#endif
#define CPU_SETS(X, OF) CPU_SET_AVX512(X, OF) CPU_SET_AVX2(X, OF) X(portable, OF)

#define X(SET, OF) OF##_##SET,
enum cpu_set { CPU_SETS(X, CPU_SET) CPU_SET_COUNT };
#undef X

/* cpu_avx512_available(), ...: true when this processor has the instruction set. */
#ifdef SCAND_CPU_AVX512
static inline int cpu_avx512_available(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#endif

#ifdef SCAND_CPU_AVX2
static inline int cpu_avx2_available(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

static inline int cpu_portable_available(void)
{
    return 1;
}

static inline enum cpu_set cpu_set_best(void)
{
#define X(SET, OF)                \
    if (OF##_##SET##_available()) \
        return CPU_SET_##SET;
    CPU_SETS(X, cpu)
#undef X
    return CPU_SET_portable;
}

#endif
