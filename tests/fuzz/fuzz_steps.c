/* The steps of `scanctl run`: they are refused by a line that names the step, or become a task that has nothing to
 * complain of. */
#include "client/scanctl/stream/pipeline.h"
#include "tests/fuzz/fuzz.h"

static void check_lengths(const struct pipeline *pipeline)
{
    uint64_t lengths[2 + SCAND_STEPS_MAX] = {100}, vectors[OPERANDS_MAX];
    struct error error = {.exit_code = 0};
    for (size_t i = 0; i < OPERANDS_MAX; i++)
        vectors[i] = 7;
    int result = pipeline_lengths(pipeline, vectors, lengths, &error);
    assert(result == error.exit_code);
    if (result)
        check_line(error.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct pipeline pipeline;
    struct error error = {.text = ""};
    char *text = (char *)exact_copy(bytes, size, true);
    int result = pipeline_check(&pipeline, text, &error);
    assert(result == 0 || (result == EX_USAGE && strncmp(error.text, "step ", 5) == 0));
    if (result) {
        check_line(error.text);
    } else {
        struct scand_task *task = pipeline_build(&pipeline, NULL);
        assert(task && scand_task_message(task)[0] == '\0');
        scand_task_destroy(task);
        check_lengths(&pipeline);
    }
    pipeline_free(&pipeline);
    free(text);
    return 0;
}
