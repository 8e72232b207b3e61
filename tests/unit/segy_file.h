/*
 * SEG-Y files of tests: the headers' fields are set one by one, the rest is zero.
 */
#ifndef TESTS_SEGY_FILE_H
#define TESTS_SEGY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct segy_file {
    bool little;
    unsigned revision, code, ns, trace_ns; /* trace_ns: what the headers of traces say, if not ns */
    unsigned traces, sample_bytes;
    int extended, trace_headers, trailers; /* as the headers say */
    unsigned extended_written, trailers_written;
    unsigned long long said_traces, first_trace;
};

static void segy_put(unsigned char *at, unsigned long long value, unsigned bytes, bool little)
{
    for (unsigned i = 0; i < bytes; i++)
        at[little ? i : bytes - 1 - i] = (unsigned char)(value >> (8 * i));
}

/* Writes the file; returns its size. Positions are those of the standard, less 1. */
static size_t segy_make(const struct segy_file *file, unsigned char *out)
{
    size_t at = 3600;
    memset(out, 0, at);
    out[0] = 'C';
    segy_put(out + 3220, file->ns, 2, file->little);
    segy_put(out + 3224, file->code, 2, file->little);
    segy_put(out + 3500, file->revision << 8, 2, file->little);
    segy_put(out + 3504, (unsigned long long)file->extended, 2, file->little);
    segy_put(out + 3506, (unsigned long long)file->trace_headers, 2, file->little);
    segy_put(out + 3510, file->said_traces, 8, file->little);
    segy_put(out + 3518, file->first_trace, 8, file->little);
    segy_put(out + 3526, (unsigned long long)file->trailers, 4, file->little);
    for (unsigned i = 0; i < file->extended_written; i++, at += 3200) {
        memset(out + at, ' ', 3200);
        if (i + 1 == file->extended_written)
            memcpy(out + at, "((SEG: EndText))", 16);
    }
    size_t trace_bytes = 240 * (1 + (size_t)file->trace_headers) + (size_t)file->ns * file->sample_bytes;
    for (unsigned i = 0; i < file->traces; i++, at += trace_bytes) {
        memset(out + at, 0, trace_bytes);
        segy_put(out + at + 114, file->trace_ns ? file->trace_ns : file->ns, 2, file->little);
    }
    memset(out + at, 't', (size_t)file->trailers_written * 3200);
    return at + (size_t)file->trailers_written * 3200;
}

#endif
