/*
 * Values of fields as programs give them, by name: put to their places in the struct of a message by the tables that
 * encode it.
 */
#ifndef CLIENT_FIELD_VALUES_H
#define CLIENT_FIELD_VALUES_H

#include "protocol/encoding.h"

/* The field of this name, from the `first` on; '-' and '_' are alike. NULL: none. */
const struct field *field_find(const struct map_type *type, size_t first, const char *name);

/* Each sets a field of the struct at `values`, where messages call it `path`. Returns 0, or -EINVAL and *error, which
 * says what is allowed. Tensors and steps have no such values. */
int field_set_text(const struct field *field, void *values, const char *path, const char *text, struct error *error);
int field_set_number(const struct field *field, void *values, const char *path, double number, struct error *error);

#endif
