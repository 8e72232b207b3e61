/*
 * Forward then backward sums as a C programmer writes them and the compiler at hand makes the best of them: one serial
 * loop per pass and row, or, of columns, one that goes along the columns side by side. Another association than order
 * 1, so not the same bits. They are what the CPU path is measured against.
 */
#ifndef TESTS_BENCH_PLAIN_H
#define TESTS_BENCH_PLAIN_H

#include <scand/types.h>
#include <stdbool.h>
#include <stdint.h>

/* Sums along `length` samples of `rows` rows, which lie one right after the other or, of columns, side by side.
 * `sums` has room for rows x 8 bytes. */
typedef void plain_scan(const void *input, void *output, void *sums, uint64_t rows, uint64_t length);

/* Returns the function for a case, or NULL. There are: rows of f32, f64, i32 and f32be, columns of f32 in f32 and f64,
 * of f64 and of i32. */
plain_scan *plain_find(enum scand_dtype dtype, enum scand_accumulator accumulator, bool columns);

#endif
