/*
 * operations: what the steps of scanctl run may be, as the daemon tells it.
 */
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "client/scanctl/commands/query.h"
#include "client/scanctl/stream/remote.h"

#define OPERATIONS_MAX 64
#define ROWS_MAX       32 /* rows that one operation takes at most */
#define COLUMNS        80
#define NAME_COLUMNS   22

static bool is_operand(const struct scand_parameter_info *row)
{
    return !strcmp(row->kind, "tensor");
}

/* Prints "NAME=VALUE", as it is written in a step. */
static void name_print(const struct scand_parameter_info *row)
{
    const char *value = is_operand(row)               ? "=FILE"
                        : !strcmp(row->kind, "flag")  ? ""
                        : !strcmp(row->kind, "word")  ? "=WORD"
                        : !strcmp(row->kind, "words") ? "=WORD,..."
                                                      : "=NUMBER";
    const int columns = printf("  %s%s%s", row->name, value, row->required ? " *" : "");
    if (columns < NAME_COLUMNS)
        printf("%*s", NAME_COLUMNS - columns, "");
    else
        printf("\n%*s", NAME_COLUMNS, "");
}

/* Prints text from the column of the names to the last column; then a new line. */
static void lines_print(const char *text)
{
    size_t column = NAME_COLUMNS;
    for (const char *at = text; *at;) {
        const size_t length = strcspn(at, " ");
        if (column > NAME_COLUMNS && column + 1 + length > COLUMNS) {
            printf("\n%*s", NAME_COLUMNS, "");
            column = NAME_COLUMNS;
        }
        column += (size_t)printf("%s%.*s", column > NAME_COLUMNS ? " " : "", (int)length, at);
        at += length;
        at += strspn(at, " ");
    }
    putchar('\n');
}

static void words_print(const struct scand_parameter_info *row)
{
    char text[2 * sizeof(row->words)] = "";
    for (const char *at = row->words; *at;) {
        const size_t length = strcspn(at, ",");
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.*s", at == row->words ? "" : ", ", (int)length,
                 at);
        at += length + (at[length] == ',');
    }
    if (!strcmp(row->kind, "words"))
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "; up to %" PRIu64 " of them", row->most);
    printf("%*s", NAME_COLUMNS, "");
    lines_print(text);
}

static void operation_print(const struct scand_operation_info *operation, const struct scand_parameter_info *rows,
                            size_t count)
{
    printf("%-*s", NAME_COLUMNS, operation->name);
    lines_print(operation->line);
    for (const struct scand_parameter_info *row = rows; row < rows + count; row++) {
        name_print(row);
        lines_print(row->line);
        if (*row->words)
            words_print(row);
        if (!strcmp(row->kind, "integer"))
            printf("%*s1 to %" PRIu64 "\n", NAME_COLUMNS, "", row->most);
        if (is_operand(row))
            printf("%*s%s; follows %s; dtypes: %s\n", NAME_COLUMNS, "", row->access, row->follows, row->dtypes);
    }
}

static void row_json(struct json *json, const struct scand_parameter_info *row)
{
    char word[sizeof(row->words)];
    json_open(json, NULL, '{');
    json_text(json, "name", row->name);
    json_text(json, "kind", row->kind);
    json_boolean(json, "required", row->required);
    json_text(json, "line", row->line);
    if (is_operand(row)) {
        json_text(json, "access", row->access);
        json_text(json, "follows", row->follows);
        json_text(json, "dtypes", row->dtypes);
    } else if (strcmp(row->kind, "number")) {
        json_unsigned(json, "most", row->most);
    }
    json_open(json, "words", '[');
    for (const char *at = row->words; *at;) {
        const size_t length = strcspn(at, ",");
        snprintf(word, sizeof(word), "%.*s", (int)length, at);
        json_text(json, NULL, word);
        at += length + (at[length] == ',');
    }
    json_close(json, ']');
    json_close(json, '}');
}

static void operation_json(struct json *json, const struct scand_operation_info *operation,
                           const struct scand_parameter_info *rows, size_t count)
{
    json_open(json, NULL, '{');
    json_text(json, "name", operation->name);
    json_text(json, "line", operation->line);
    json_open(json, "parameters", '[');
    for (size_t i = 0; i < count; i++)
        row_json(json, &rows[i]);
    json_close(json, ']');
    json_close(json, '}');
}

/* The operations that were asked for, in the order of the words; without words, all. */
struct choice {
    struct scand_operation_info operations[OPERATIONS_MAX];
    size_t count;
};

/* Fails for a word that names no operation, and says which there are. */
static int error_no_operation(const char *word, const struct choice *all, struct error *error)
{
    char names[512] = "";
    for (size_t i = 0; i < all->count; i++) {
        const size_t length = strlen(names);
        snprintf(names + length, sizeof(names) - length, "%s%s", i ? ", " : "", all->operations[i].name);
    }
    return fail(error, EX_USAGE, "there is no operation \"%s\"; there are: %s", word, names);
}

static int choose(const struct choice *all, int argc, char **argv, struct choice *chosen, struct error *error)
{
    chosen->count = 0;
    for (int i = 0; i < argc; i++) {
        size_t found = 0;
        while (found < all->count && strcmp(all->operations[found].name, argv[i]))
            found++;
        if (found == all->count)
            return error_no_operation(argv[i], all, error);
        if (chosen->count == OPERATIONS_MAX)
            return fail(error, EX_USAGE, "%d operations are asked for; ask for at most %d at a time", argc,
                        OPERATIONS_MAX);
        chosen->operations[chosen->count++] = all->operations[found];
    }
    if (!argc)
        *chosen = *all;
    return 0;
}

static int choice_print(struct scand *daemon, const struct choice *chosen, bool as_json, struct error *error)
{
    static struct scand_parameter_info rows[ROWS_MAX];
    struct json json = {.file = stdout};
    size_t row_count;
    int status = 0;
    if (as_json)
        json_open(&json, NULL, '[');
    for (size_t i = 0; !status && i < chosen->count; i++) {
        status = scand_parameters(daemon, chosen->operations[i].name, rows, sizeof(*rows), ROWS_MAX, &row_count);
        if (!status && as_json)
            operation_json(&json, &chosen->operations[i], rows, row_count);
        else if (!status)
            operation_print(&chosen->operations[i], rows, row_count);
    }
    if (status)
        return remote_error(daemon, status, "operations", error);
    if (as_json) {
        json_close(&json, ']');
        putchar('\n');
    } else {
        printf("\n*: needed; of others the first word counts where none is given. A flag is said\n"
               "by its name alone. See scanctl run --help\n");
    }
    return 0;
}

static int query_operations(struct scand *daemon, int argc, char **argv, bool as_json, struct error *error)
{
    static struct choice all, chosen;
    const int status = scand_operations(daemon, all.operations, sizeof(*all.operations), OPERATIONS_MAX, &all.count);
    if (status)
        return remote_error(daemon, status, "operations", error);
    if (!all.count)
        return fail(error, EX_USAGE, "the daemon (%s) is older than scanctl run and tells no operations; upgrade it",
                    scand_server_name(daemon));
    const int result = choose(&all, argc, argv, &chosen, error);
    return result ? result : choice_print(daemon, &chosen, as_json, error);
}

int command_operations(int argc, char **argv, struct common_options *common, struct error *error)
{
    struct scand *daemon;
    int result = options_parse(argc, argv, &(struct option_set){.table = local_options}, common, error);
    if (result || common->help)
        return result;
    result = remote_open_computing(common->socket_path, common->local, &daemon, error);
    if (result)
        return result;
    result = query_operations(daemon, argc - optind, argv + optind, common->json, error);
    scand_disconnect(daemon);
    return result;
}
