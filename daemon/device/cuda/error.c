#include "error.h"

bool cuda_is_sticky(cudaError_t e)
{
    switch ((int)e) {
    case 214: /* ECC uncorrectable */
    case 220: /* NVLink uncorrectable */
    case 700: /* illegal address */
    case 702: /* launch timeout */
    case 710: /* assert */
    case 714: /* hardware stack error */
    case 715: /* illegal instruction */
    case 716: /* misaligned address */
    case 717: /* invalid address space */
    case 718: /* invalid program counter */
    case 719: /* launch failure */
        return true;
    default:
        return false;
    }
}
