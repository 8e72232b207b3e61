#define CPU_VECTOR_BYTES 16
#define CPU_BUILD        cpu_build_portable
#include "kernels/cpu/generic/block.inc"
