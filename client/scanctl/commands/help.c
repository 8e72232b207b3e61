#include "client/scanctl/commands/commands.h"

#include <string.h>

/* Texts that the help of some commands has beside their options. */
static const struct note {
    const char *name, *before, *after;
} notes[] = {
    {"scan",
     "Scans the rows of each IN and writes the result to OUT in the same form, with the same headers: SEG-Y, SU, RSF,\n"
     ".npy or raw samples; a name OUT.npy or OUT.raw gets the samples alone. OUT appears whole or not at all, in a\n"
     "folder that exists. IN and OUT may be the same file, or - for standard input and output.\n",
     "  scanctl scan --passes forward,backward gather.su -o integrated.su\n"
     "  segyread tape=line.sgy | scanctl scan - -o - | suximage\n"},
    {"reduce",
     "Reduces each row of IN to one number. Without -o they are printed, one per line; OUT is .npy, or raw\n"
     "where its name ends in .raw, and appears whole or not at all.\n",
     "  scanctl reduce --op rms gather.su\n"},
    {"run",
     "Runs STEPS, one after the other, on the rows of each IN; what is between them stays on the device. STEPS is one\n"
     "word, so in quotes: operations with | between them, each with words NAME=VALUE, of which scanctl operations has\n"
     "the list. A flag is its name alone, and the first parameter may be its value alone, right after the operation.\n"
     "A FILE beside IN holds an element for each of its samples. Where the last step is reduce, IN, OUT and what is\n"
     "printed are as of scanctl reduce; else as of scanctl scan.\n",
     "  scanctl run 'scan forward,backward accumulator=f64 demean | scan forward op=max' in.su -o out.su\n"
     "  scanctl run 'reduce rms' gather.su\n"},
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
