/* The scan's parts: its checks, and the checks of the tutorials' variants. */
#ifndef DAEMON_OPERATION_SCAN_H
#define DAEMON_OPERATION_SCAN_H

#include "daemon/core/operations/operation.h"

int scan_check(const struct asked *asked, struct step *step, struct error *error);
int scan_check_algorithm(const struct request *request, const struct operand *operands, const struct scan_rows *rows,
                         struct scan_rule *rule, struct error *error);

#endif
