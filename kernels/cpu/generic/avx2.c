#define CPU_VECTOR_BYTES 32
#define CPU_BUILD        cpu_build_avx2
#include "kernels/cpu/generic/block.inc"
