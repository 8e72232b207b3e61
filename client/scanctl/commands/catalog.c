/*
 * The list of the commands, for the help and for completion.
 */
#include "client/scanctl/commands/commands.h"

#define X(NAME, OPTIONS, ARGUMENTS, TEXT) {#NAME, "scanctl " #NAME, OPTIONS, ARGUMENTS, TEXT},
static const struct command commands[] = {COMMANDS(X)};
#undef X

const struct command *command_at(size_t i)
{
    return i < sizeof(commands) / sizeof(commands[0]) ? &commands[i] : NULL;
}
