#include <stdio.h>
#include <string.h>

#include "client/scanctl/commands/commands.h"

static const char scan_help[] =
    "usage: scanctl scan [OPTION...] IN -o OUT\n"
    "Scans the rows of IN and writes the result to OUT in the same form. OUT appears whole or not at "
    "all.\n"
    "IN and OUT may be the same file, or - for standard input and output.\n"
    "\n"
    "  -o, --output OUT        the result's file\n"
    "      --passes LIST       forward, backward, or two of them in order: forward,backward [forward]\n"
    "      --kind KIND         inclusive | exclusive | half [inclusive]\n"
    "      --demean            first take each row's mean from its samples\n"
    "      --op OPERATOR       sum | prod | max | min | affine [sum]\n"
    "      --coefficient A     of affine, y[i] = A y[i-1] + x[i]: a number, not 0\n"
    "      --coefficients FILE of affine, one for each sample: .npy, SU, or raw samples of IN's type, in IN's shape\n"
    "      --accumulator TYPE  what sums are kept in: f32 | f64 | f2 | exact [f64; integers: exact;\n"
    "                          with --algorithm: f32]\n"
    "      --algorithm NAME    a scan of the tutorials, see scanctl kernels: inclusive sums of f32 along the last "
    "axis\n"
    "      --intermediate TYPE what values are rounded to between two passes: f64 | f32 [f64 samples: f64; else f32]\n"
    "      --output-dtype TYPE the result's, as for --dtype [f32; f64 and integers: as IN]\n"
    "      --offsets FILE      rows of differing lengths along an IN of one dimension: row r is the samples from the\n"
    "                          r-th offset up to the next one; .npy of integers, or raw ones of 64 bits\n"
    "      --axis N            the axis to scan, from 0; negative ones count from the last [-1]\n"
    "      --format FORM       raw | npy | su [by IN's extension, else raw]\n"
    "      --shape A,B,...     of raw samples, the last axis dense\n"
    "      --dtype TYPE        of raw samples: f32 | f64 | f16 | bf16 | i32 | i64 | u32 | u64 |\n"
    "                          f32be | i16be | i32be | ibm32 (big-endian) [f32]\n"
    "      --byte-order ORDER  of raw and SU samples: little | big [raw: this machine's; SU: found out]\n"
    "      --then STEP         scan the result again, in place, while it is on the device; up to 8 times. A step is "
    "made\n"
    "                          of words as above: --then forward,backward,demean --then "
    "backward,op=max,kind=exclusive,\n"
    "                          also accumulator=, intermediate=, coefficient= [forward]\n"
    "      --priority CLASS    low | normal | high: which of your own jobs go first [normal]\n"
    "      --deadline MS       give up, with exit code 75, when a job could not start within so many milliseconds\n"
    "      --json              print rows, samples, times and GB/s as one JSON object\n"
    "      --socket PATH       the daemon's socket\n"
    "\n"
    "  scanctl scan --passes forward,backward gather.su -o integrated.su\n";

static const char reduce_help[] =
    "usage: scanctl reduce --op OP [OPTION...] IN [-o OUT]\n"
    "Reduces each row of IN to one number. Without -o they are printed, one per line; OUT is .npy, or raw\n"
    "where its name ends in .raw, and appears whole or not at all.\n"
    "\n"
    "      --op OP             sum | min | max | mean | rms | norm; sums are kept in f64\n"
    "  -o, --output OUT        the results' file, or - for standard output\n"
    "      --algorithm NAME    a reduction of the tutorials, see scanctl kernels: f32 along the last axis\n"
    "      --output-dtype TYPE the results' [f64; integers: sums in 64 bits, min and max as IN]\n"
    "      --offsets FILE      rows of differing lengths, as for scanctl scan: a number for each\n"
    "      --axis N            the axis to reduce, from 0; negative ones count from the last [-1]\n"
    "      --format FORM       raw | npy | su [by IN's extension, else raw]\n"
    "      --shape A,B,...     of raw samples, the last axis dense\n"
    "      --dtype TYPE        of raw samples, as for scanctl scan [f32]\n"
    "      --byte-order ORDER  of raw and SU samples: little | big [raw: this machine's; SU: found out]\n"
    "      --priority CLASS    low | normal | high: which of your own jobs go first [normal]\n"
    "      --deadline MS       give up, with exit code 75, when a job could not start within so many milliseconds\n"
    "      --json              print the results, unless -o is given, and times as one JSON object\n"
    "      --socket PATH       the daemon's socket\n"
    "\n"
    "  scanctl reduce --op rms gather.su\n";

void help_print(const char *command)
{
    if (!strcmp(command, "scanctl scan")) {
        fputs(scan_help, stdout);
        return;
    }
    if (!strcmp(command, "scanctl reduce")) {
        fputs(reduce_help, stdout);
        return;
    }
#define X(NAME, ARGUMENTS, TEXT)            \
    if (!strcmp(command, "scanctl " #NAME)) \
        printf("usage: scanctl %s%s%s [--socket PATH]\n%s\n", #NAME, *ARGUMENTS ? " " : "", ARGUMENTS, TEXT);
    COMMANDS(X)
#undef X
}
