/*
 * Numbers and words as people and programs read them.
 */
#ifndef SCANCTL_TEXT_H
#define SCANCTL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "protocol/text.h"

#define GROUPED_BYTES 32

/* Writes a number with thousands grouped, "10,000". out: GROUPED_BYTES. Returns out. */
const char *grouped(uint64_t number, char *out);
/* Writes microseconds as "12.3 ms". out: GROUPED_BYTES. Returns out. */
const char *duration(uint64_t microseconds, char *out);
/* Writes bytes as "12.3 MiB". out: GROUPED_BYTES. Returns out. */
const char *binary_size(uint64_t bytes, char *out);
/* Returns part in percent of all; 100 when all is 0. */
double percent(uint64_t part, uint64_t all);
/* Returns gigabytes (10^9) per second; 0 for no time. */
double gigabytes_per_second(uint64_t bytes, uint64_t microseconds);

/* One JSON value, written as it is told: open, members, close. Members of an array have no key (NULL). */
struct json {
    FILE *file;
    bool more; /* a member was written before the next one */
};

void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
/* Writes a text, escaped; bytes that are not UTF-8 become U+FFFD. */
void json_text(struct json *json, const char *key, const char *text);
void json_unsigned(struct json *json, const char *key, uint64_t number);
void json_real(struct json *json, const char *key, double number);
/* Writes a number as it is written in `text`, or null. */
void json_number(struct json *json, const char *key, const char *text);
void json_boolean(struct json *json, const char *key, bool value);

#endif
