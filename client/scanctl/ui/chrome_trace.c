#include "client/scanctl/ui/chrome_trace.h"

#include <inttypes.h>

#include "client/scanctl/ui/text.h"

#define NAME_BYTES     64
#define DEVICE_PROCESS 0 /* connections have their numbers, from 1 on */

/* Opens a complete event, up to its arguments. */
static void event_open(struct json *json, const char *name, uint64_t process, uint64_t thread, uint64_t begin_us,
                       uint64_t end_us)
{
    json_open(json, NULL, '{');
    json_text(json, "name", name);
    json_text(json, "ph", "X");
    json_unsigned(json, "pid", process);
    json_unsigned(json, "tid", thread);
    json_unsigned(json, "ts", begin_us);
    json_unsigned(json, "dur", end_us > begin_us ? end_us - begin_us : 0);
    json_open(json, "args", '{');
}

static void event_close(struct json *json)
{
    json_close(json, '}');
    json_close(json, '}');
}

static void event_print(struct json *json, const char *name, uint64_t process, uint64_t thread, uint64_t begin_us,
                        uint64_t end_us)
{
    event_open(json, name, process, thread, begin_us, end_us);
    event_close(json);
}

static void process_name(struct json *json, uint64_t process, const char *name)
{
    json_open(json, NULL, '{');
    json_text(json, "name", "process_name");
    json_text(json, "ph", "M");
    json_unsigned(json, "pid", process);
    json_open(json, "args", '{');
    json_text(json, "name", name);
    event_close(json);
}

/* Names an event as people know the job: "job 17", or "job 17 of 3". Returns out, of NAME_BYTES. */
static const char *event_name(const struct scand_event *event, char *out)
{
    if (event->group)
        snprintf(out, NAME_BYTES, "job %" PRIu64 " of %" PRIu64, event->job, event->group);
    else
        snprintf(out, NAME_BYTES, "job %" PRIu64, event->job);
    return out;
}

/* A step's beginning, from its end and its length, inside the chunk. */
static uint64_t step_begin(const struct scand_event *chunk, uint64_t end_us, uint64_t length_us)
{
    uint64_t room_us = end_us > chunk->begin_us ? end_us - chunk->begin_us : 0;
    return end_us - (length_us < room_us ? length_us : room_us);
}

/* The steps are known by their lengths alone: they are drawn one after the other up to the chunk's end. */
static void chunk_print(struct json *json, const struct scand_event *chunk)
{
    char name[NAME_BYTES];
    uint64_t computed_us = step_begin(chunk, chunk->end_us, chunk->download_us);
    uint64_t uploaded_us = step_begin(chunk, computed_us, chunk->kernel_us);
    uint64_t begun_us = step_begin(chunk, uploaded_us, chunk->upload_us);
    uint64_t row = chunk->device * CHROME_TRACE_SLOTS + chunk->slot;
    event_open(json, event_name(chunk, name), DEVICE_PROCESS, row, chunk->begin_us, chunk->end_us);
    json_unsigned(json, "device", chunk->device);
    json_unsigned(json, "rows", chunk->rows);
    json_unsigned(json, "client", chunk->client);
    event_close(json);
    event_print(json, "upload", DEVICE_PROCESS, row, begun_us, uploaded_us);
    event_print(json, "kernel", DEVICE_PROCESS, row, uploaded_us, computed_us);
    event_print(json, "download", DEVICE_PROCESS, row, computed_us, chunk->end_us);
}

static void job_print(struct json *json, const struct scand_event *job)
{
    char name[NAME_BYTES];
    uint64_t started_us = job->started_us ? job->started_us : job->end_us;
    event_open(json, event_name(job, name), job->client, job->job, job->begin_us, job->end_us);
    json_unsigned(json, "rows", job->rows);
    json_unsigned(json, "user", job->user);
    json_text(json, "outcome", scand_status_word((int)job->status));
    event_close(json);
    event_print(json, "queued", job->client, job->job, job->begin_us, started_us);
    event_print(json, "running", job->client, job->job, started_us, job->end_us);
}

void chrome_trace_print(FILE *file, const struct scand_event *events, size_t count)
{
    struct json json = {.file = file};
    json_open(&json, NULL, '{');
    json_text(&json, "displayTimeUnit", "ms");
    json_open(&json, "traceEvents", '[');
    process_name(&json, DEVICE_PROCESS, "devices");
    for (const struct scand_event *event = events; event < events + count; event++)
        (event->kind == SCAND_EVENT_CHUNK ? chunk_print : job_print)(&json, event);
    json_close(&json, ']');
    json_close(&json, '}');
    fputc('\n', file);
}
