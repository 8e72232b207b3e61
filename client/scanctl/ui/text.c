#include "client/scanctl/ui/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

const char *grouped(uint64_t number, char *out)
{
    char digits[GROUPED_BYTES];
    int length = snprintf(digits, sizeof(digits), "%" PRIu64, number);
    char *end = out;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *end++ = ',';
        *end++ = digits[i];
    }
    *end = '\0';
    return out;
}

const char *duration(uint64_t microseconds, char *out)
{
    if (microseconds < 1000)
        snprintf(out, GROUPED_BYTES, "%" PRIu64 " us", microseconds);
    else if (microseconds < 1000000)
        snprintf(out, GROUPED_BYTES, "%.1f ms", (double)microseconds / 1e3);
    else
        snprintf(out, GROUPED_BYTES, "%.2f s", (double)microseconds / 1e6);
    return out;
}

const char *binary_size(uint64_t bytes, char *out)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double size = (double)bytes / 1024;
    size_t unit = 0;
    for (; size >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
        size /= 1024;
    if (bytes < 1024)
        snprintf(out, GROUPED_BYTES, "%" PRIu64 " B", bytes);
    else
        snprintf(out, GROUPED_BYTES, "%.1f %s", size, units[unit]);
    return out;
}

double percent(uint64_t part, uint64_t all)
{
    return all ? 100 * (double)part / (double)all : 100;
}

double gigabytes_per_second(uint64_t bytes, uint64_t microseconds)
{
    return microseconds ? (double)bytes / (double)microseconds / 1e3 : 0;
}

static void json_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (const char *at = text; *at;) {
        size_t length = utf8_length(at);
        if (!length)
            fputs("\\ufffd", file);
        else if (*at == '"' || *at == '\\')
            fprintf(file, "\\%c", *at);
        else if ((unsigned char)*at < 0x20 || *at == 0x7f)
            fprintf(file, "\\u%04x", (unsigned)*at);
        else
            fwrite(at, 1, length, file);
        at += length ? length : 1;
    }
    fputc('"', file);
}

static void json_key(struct json *json, const char *key)
{
    if (json->more)
        fputs(", ", json->file);
    json->more = true;
    if (!key)
        return;
    json_string(json->file, key);
    fputs(": ", json->file);
}

void json_open(struct json *json, const char *key, char bracket)
{
    json_key(json, key);
    fputc(bracket, json->file);
    json->more = false;
}

void json_close(struct json *json, char bracket)
{
    fputc(bracket, json->file);
    json->more = true;
}

void json_text(struct json *json, const char *key, const char *text)
{
    json_key(json, key);
    json_string(json->file, text);
}

void json_unsigned(struct json *json, const char *key, uint64_t number)
{
    json_key(json, key);
    fprintf(json->file, "%" PRIu64, number);
}

void json_real(struct json *json, const char *key, double number)
{
    json_key(json, key);
    if (isfinite(number))
        fprintf(json->file, "%.6g", number);
    else
        fputs("null", json->file);
}

void json_number(struct json *json, const char *key, const char *text)
{
    json_key(json, key);
    fputs(text, json->file);
}

void json_boolean(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    fputs(value ? "true" : "false", json->file);
}
