#include "client/scanctl/commands/commands.h"

#include <string.h>

/* What the help of some commands says beside their options. */
static const struct note {
    const char *name, *before, *after;
} notes[] = {
    {"scan",
     "Scans the rows of each IN and writes the result to OUT in the same form, with the same headers: SEG-Y, SU, .npy "
     "or\n"
     "or raw samples. OUT appears whole or not at all. IN and OUT may be the same file, or - for standard input and "
     "output.\n",
     "  scanctl scan --passes forward,backward gather.su -o integrated.su\n"
     "  segyread tape=line.sgy | scanctl scan - -o - | suximage\n"},
    {"reduce",
     "Reduces each row of IN to one number. Without -o they are printed, one per line; OUT is .npy, or raw\n"
     "where its name ends in .raw, and appears whole or not at all.\n",
     "  scanctl reduce --op rms gather.su\n"},
};

void help_print(const struct command *command, FILE *file)
{
    const struct note *note = NULL;
    for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
        if (!strcmp(notes[i].name, command->name))
            note = &notes[i];
    fprintf(file, "usage: %s%s%s\n", command->full_name, *command->arguments ? " " : "", command->arguments);
    if (note)
        fprintf(file, "%s\n", note->before);
    else
        fprintf(file, "%c%s.\n\n", command->text[0] - 'a' + 'A', command->text + 1);
    options_print(command->options, file);
    if (note)
        fprintf(file, "\n%s", note->after);
}
