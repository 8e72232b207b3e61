#define CPU_VECTOR_BYTES 64
#define CPU_BUILD        cpu_build_avx512
#include "kernels/cpu/generic/block.inc"
