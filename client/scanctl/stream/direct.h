/*
 * Files that the daemon reads itself (scand_buffer_import_file): samples then go from the file to the device without
 * coming here, while this program writes results.
 */
#ifndef SCANCTL_DIRECT_H
#define SCANCTL_DIRECT_H

#include "client/scanctl/stream/stream.h"

/* Lets the daemon have the input where it can read it as it is, and sets stream->direct; else the input is read here.
 */
void direct_open(struct stream *stream);
void direct_close(struct stream *stream);
/* The input of a batch, whose tensors are in a slot, is the file's from this position on. */
void direct_place(const struct stream *stream, const struct slot *slot, struct scand_tensor *input);

#endif
