#ifndef SCAND_PYTHON_ALLOCATOR_H
#define SCAND_PYTHON_ALLOCATOR_H

/*
 * Memory of NumPy's arrays that jobs work on where it lies (NEP 49): each large array has a memfd of its own, small
 * ones are malloc's. Any thread may call these functions, which never call Python. Memory that no array has any more is
 * kept for the next ones. A child of fork has its parent's arrays, and makes none in memory that its parent has.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NumPy's PyDataMem_Handler. Functions return NULL where there is no memory. */
struct scand_array_handler {
    char name[127];
    uint8_t version;
    void *context;
    void *(*allocate)(void *context, size_t size_bytes);
    void *(*allocate_zeros)(void *context, size_t count, size_t size_bytes);
    void *(*resize)(void *context, void *memory, size_t size_bytes);
    void (*release)(void *context, void *memory, size_t size_bytes);
};

struct scand_array_block {
    uint64_t serial;     /* a number of its own, which no other block gets */
    uint64_t address;    /* address of the first byte */
    uint64_t size_bytes; /* bytes of the whole block */
    int fd;              /* the memfd, which stays the allocator's */
};

/* The handler, and the name of a capsule around it. Both are there until the process ends. */
struct scand_array_handler *scand_array_handler(void);
const char *scand_array_handler_name(void);

/* The block that has this byte; false where none has. */
bool scand_array_find(uint64_t address, struct scand_array_block *out);
/* True when there is a block of this number, in use or kept. */
bool scand_array_has(uint64_t serial);
/* Somebody else may still write to this block: no other array gets its memory. */
void scand_array_retire(uint64_t serial);
/* Gives memory back that no array has. */
void scand_array_trim(void);
/* The number of blocks that are gone: it grows before their numbers are unknown. */
uint64_t scand_array_drops(void);

#endif
