/*
 * Runs an example of the documentation on files: for each tensor three words, its dtype as types.h calls it, its shape
 * ("12x120") and an .npy file. The first is the input, the second the output, whose samples are written behind the
 * header that its file has.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <scand/scand.h>

enum { TENSORS_MAX = 8, HEADER_BYTES = 128 };

int example(struct scand *daemon, const struct scand_tensor *tensors);

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void check(struct scand *daemon, int status)
{
    if (status)
        fail(scand_status_word(status), daemon ? scand_message(daemon) : scand_connect_message());
}

static enum scand_dtype dtype_of(const char *name)
{
    static const char prefix[] = "SCAND_DTYPE_";
    char word[16] = "";
    for (size_t i = sizeof prefix - 1; i < strlen(name) && i < sizeof prefix + sizeof word - 3; i++)
        word[i - (sizeof prefix - 1)] = (char)(name[i] | ('A' <= name[i] && name[i] <= 'Z' ? 0x20 : 0));
    const int found = scand_word_find(SCAND_LIST_DTYPE, word);
    if (found < 0)
        fail(name, "no dtype");
    return (enum scand_dtype)found;
}

static uint64_t shape_read(struct scand_tensor *tensor, const char *text)
{
    uint64_t count = 1;
    for (char *end = NULL; tensor->rank < SCAND_RANK_MAX; text = end + 1) {
        tensor->shape[tensor->rank] = strtoull(text, &end, 10);
        count *= tensor->shape[tensor->rank++];
        if (*end != 'x')
            break;
    }
    return count;
}

static void file_copy(const char *path, bool writes, void *data, uint64_t bytes)
{
    FILE *file = fopen(path, "r+b");
    if (!file || fseek(file, HEADER_BYTES, SEEK_SET))
        fail(path, "cannot be opened");
    if ((writes ? fwrite(data, 1, bytes, file) : fread(data, 1, bytes, file)) != bytes || fclose(file))
        fail(path, "cannot be read or written");
}

int main(int argc, char **argv)
{
    struct scand *daemon;
    struct scand_tensor tensors[TENSORS_MAX] = {{0}};
    uint64_t bytes[TENSORS_MAX];
    const int count = (argc - 1) / 3;
    check(NULL, scand_connect(NULL, NULL, &daemon));
    for (int i = 0; i < count && i < TENSORS_MAX; i++) {
        struct scand_tensor *tensor = &tensors[i];
        tensor->dtype = dtype_of(argv[1 + 3 * i]);
        bytes[i] = shape_read(tensor, argv[2 + 3 * i]) * scand_dtype_bytes(tensor->dtype);
        check(daemon, scand_buffer_create(daemon, SCAND_PLACE_HOST, bytes[i], &tensor->buffer));
        scand_tensor_pack(tensor);
        if (i != 1)
            file_copy(argv[3 + 3 * i], false, scand_buffer_data(tensor->buffer), bytes[i]);
    }
    check(daemon, example(daemon, tensors));
    file_copy(argv[6], true, scand_buffer_data(tensors[1].buffer), bytes[1]);
    scand_disconnect(daemon);
    return 0;
}
