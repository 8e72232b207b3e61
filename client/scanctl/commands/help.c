/* The help of scanctl and of each command, made of the tables of options. */
#include "client/scanctl/commands/commands.h"

#include <getopt.h>
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
     "Reduces each row of each IN to one number. Without -o they are printed, one per line, with the file's name "
     "where\n"
     "there are several; OUT is .npy, or raw where its name ends in .raw, and appears whole or not at all. In a "
     "folder\n"
     "each IN has its results under its own name, with .npy at its end.\n",
     "  scanctl reduce --op rms gather.su\n"
     "  scanctl reduce --op max --axis all gathers/*.npy | sort -g\n"},
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

void usage_print(FILE *file)
{
    const struct command *command;
    fprintf(file, "usage: scanctl [--socket PATH | --local] COMMAND [OPTION...]\n\n");
    for (size_t i = 0; (command = command_at(i)); i++)
        fprintf(file, "  %-10s %-34s %s\n", command->name, command->arguments, command->text);
    fprintf(
        file,
        "\n"
        "  --socket PATH  the daemon's socket; else $SCAND_SOCKET, else $XDG_RUNTIME_DIR/scand.sock where that is\n"
        "                 there, else /run/scand/scand.sock\n"
        "  --local        scan, reduce, run and demo: compute in this process, without a daemon;\n"
        "                 operations and kernels: list what it can do\n"
        "  --version, -V  print the version\n"
        "  --help, -h     print this; after a command's name, that command's help\n\n"
        "Exit codes: 0 success, 64 wrong usage, 65 wrong data, 66 no input, 69 no daemon, 70 a fault of the daemon "
        "or device,\n"
        "73 output cannot be created, 74 reading or writing failed, 75 try again, 77 not permitted, 130 cancelled.\n");
}

int command_unknown(const char *word, struct error *error)
{
    char names[256] = "";
    const struct command *command;
    for (size_t i = 0; (command = command_at(i)); i++) {
        strcat(names, i ? ", " : "");
        strcat(names, command->name);
    }
    return fail(error, EX_USAGE, "unknown command \"%s\"; give one of %s; see scanctl --help", word, names);
}

static const struct command *command_find(const char *name)
{
    const struct command *command;
    for (size_t i = 0; (command = command_at(i)); i++)
        if (!strcmp(command->name, name))
            return command;
    return NULL;
}

int command_help(int argc, char **argv, struct common_options *common, struct error *error)
{
    int result = options_parse(argc, argv, &(struct option_set){.table = common_options}, common, error);
    if (result || common->help)
        return result;
    if (optind < argc - 1)
        return fail(error, EX_USAGE, "%s takes the name of one command, and got %d words; see scanctl --help", argv[0],
                    argc - optind);
    const struct command *command = optind < argc ? command_find(argv[optind]) : NULL;
    if (optind < argc && !command)
        return command_unknown(argv[optind], error);
    if (command)
        help_print(command, stdout);
    else
        usage_print(stdout);
    return 0;
}
