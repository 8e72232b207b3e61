/*
 * The fake daemon's answers to questions about itself, server.devices and so on, and what its other answers need, too.
 */
#ifndef TESTS_FAKE_ANSWERS_H
#define TESTS_FAKE_ANSWERS_H

#include "tests/unit/fake_daemon.h"

/* Ends the test program where the fake daemon itself fails. */
void fake_must(bool condition, const char *what);
void fake_send_result(struct fake_client *client, uint32_t msgid, const struct map_type *type, const void *result,
                      const int *fds, size_t fd_count);
/* Returns the ending of the daemon's texts. */
const char *fake_ending(const struct fake *fake);

void answer_devices(struct fake *fake, struct fake_client *client, const struct message *message);
void answer_kernels(struct fake *fake, struct fake_client *client, const struct message *message);
void answer_jobs(struct fake *fake, struct fake_client *client, const struct message *message);
void answer_clients(struct fake *fake, struct fake_client *client, const struct message *message);
void answer_users(struct fake *fake, struct fake_client *client, const struct message *message);
void answer_trace(struct fake *fake, struct fake_client *client, const struct message *message);
void answer_histograms(struct fake *fake, struct fake_client *client, const struct message *message);
void answer_stats(struct fake *fake, struct fake_client *client, const struct message *message);

#endif
