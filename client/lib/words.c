/* The lists of scand/types.h, for programs that read and write their words. */
#include <string.h>

#include "client/lib/internal.h"

static const struct words *const lists[] = {
    [SCAND_LIST_OPERATION] = &operation_words,
    [SCAND_LIST_REDUCTION] = &reduction_words,
    [SCAND_LIST_DTYPE] = &dtype_words,
    [SCAND_LIST_ACCUMULATOR] = &accumulator_words,
    [SCAND_LIST_INTERMEDIATE] = &intermediate_words,
    [SCAND_LIST_KIND] = &kind_words,
    [SCAND_LIST_OPERATOR] = &operator_words,
    [SCAND_LIST_PASS] = &pass_words,
    [SCAND_LIST_PLACE] = &place_words,
    [SCAND_LIST_SHARING] = &sharing_words,
    [SCAND_LIST_JOB_STATE] = &job_state_words,
    [SCAND_LIST_EVENT] = &event_words,
    [SCAND_LIST_PRIORITY] = &priority_words,
};

/* Returns a list's words, or NULL where there is no such list. */
static const struct words *words_of(enum scand_list list)
{
    return (size_t)list < sizeof lists / sizeof lists[0] ? lists[list] : NULL;
}

const char *scand_version(void)
{
    return SCAND_VERSION_TEXT;
}

const char *scand_word(enum scand_list list, int value)
{
    const struct words *words = words_of(list);
    return words && value >= 0 && (size_t)value < words->count ? words->words[value] : NULL;
}

int scand_word_find(enum scand_list list, const char *word)
{
    const struct words *words = words_of(list);
    return words ? words_find(words, word, strlen(word)) : -1;
}

uint64_t scand_dtype_bytes(enum scand_dtype dtype)
{
    return (size_t)dtype < SCAND_DTYPE_COUNT ? dtype_size_bytes(dtype) : 0;
}

enum scand_class scand_dtype_class(enum scand_dtype dtype)
{
    return (size_t)dtype < SCAND_DTYPE_COUNT ? dtype_class(dtype) : SCAND_CLASS_F32;
}

enum scand_accumulator scand_accumulator_of(enum scand_accumulator accumulator, enum scand_dtype samples,
                                            const char *algorithm)
{
    return (size_t)samples < SCAND_DTYPE_COUNT ? accumulator_of(accumulator, samples, algorithm != NULL) : accumulator;
}
