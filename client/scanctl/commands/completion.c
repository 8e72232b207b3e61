/*
 * completion: scripts with which shells complete scanctl's words, made from the tables of its options.
 */
#include <getopt.h>
#include <string.h>

#include "client/scanctl/commands/commands.h"
#include "client/scanctl/formats/file.h"

/* Writes the words that an option's value may be, a space before each. Nothing where it is not one of a list. */
static void values_print(int values)
{
    if (values == VALUE_BYTE_ORDER)
        printf(" little big");
    if (values == VALUE_OUTPUT_FORMAT)
        printf(" same ieee");
    for (int i = 0; values == VALUE_FORMAT && i < FORMAT_COUNT; i++)
        printf(" %s", format_word((enum format)i));
    for (int i = 0; values >= 0 && scand_word((enum scand_list)values, i); i++)
        printf(" %s", scand_word((enum scand_list)values, i));
}

/* Prints the first line of what an option does, inside single quotes: `quote` stands for one such mark, and a backslash
 * comes before each of `escaped`. */
static void text_print(const char *text, const char *quote, const char *escaped)
{
    for (; *text && *text != '\n'; text++)
        if (*text == '\'')
            printf("%s", quote);
        else
            printf("%s%c", strchr(escaped, *text) ? "\\" : "", *text);
}

static void zsh_text(const char *text)
{
    text_print(text, "'\\''", "[]:\\");
}

static void fish_text(const char *text)
{
    text_print(text, "\\'", "\\");
}

static void bash_option_values(const struct command *command, const struct option_row *row)
{
    if (!row->argument)
        return;
    printf("    %s:--%s", command->name, row->name);
    if (row->letter)
        printf(" | %s:-%c", command->name, row->letter);
    if (row->values == VALUE_FILE)
        printf(") _scanctl_files ;;\n");
    else {
        printf(") COMPREPLY=($(compgen -W \"");
        values_print(row->values);
        printf("\" -- \"$current\")) ;;\n");
    }
}

static void names_print(void)
{
    const struct command *command;
    for (size_t i = 0; (command = command_at(i)); i++)
        printf(" %s", command->name);
}

static void bash_print(void)
{
    const struct command *command;
    printf("# Completion of scanctl for bash: source it, or put it into /etc/bash_completion.d.\n"
           "_scanctl_files() # names may have spaces, and the shell's quotes or backslashes so far\n{\n"
           "    local name=${current//\\\\/}\n"
           "    mapfile -t COMPREPLY < <(compgen -f -- \"${name#[\\\"\\']}\")\n"
           "}\n"
           "_scanctl()\n{\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command= words= i\n"
           "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "        case ${COMP_WORDS[i]} in\n"
           "        --socket) ((i++)) ;;\n"
           "        -*) ;;\n"
           "        *) command=${COMP_WORDS[i]}; break ;;\n"
           "        esac\n"
           "    done\n"
           "    case $command:$previous in\n"
           "    :--socket) _scanctl_files; return ;;\n"
           "    esac\n"
           "    case $command in\n"
           "    '') words='--socket --version --help");
    names_print();
    printf("' ;;\n");
    for (size_t i = 0; (command = command_at(i)); i++) {
        printf("    %s) words='", command->name);
        for (const struct option_row *row = command->options; row->name; row++)
            printf("%s--%s", row == command->options ? "" : " ", row->name);
        printf("' ;;\n");
    }
    printf("    esac\n    case $command:$previous in\n");
    for (size_t i = 0; (command = command_at(i)); i++)
        for (const struct option_row *row = command->options; row->name; row++)
            bash_option_values(command, row);
    printf("    completion:completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$current\")) ;;\n"
           "    help:help) COMPREPLY=($(compgen -W '");
    names_print();
    printf("' -- \"$current\")) ;;\n"
           "    *)\n"
           "        if [[ $current == -* || -z $command ]]; then\n"
           "            COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
           "        else\n"
           "            _scanctl_files\n"
           "        fi\n"
           "        ;;\n"
           "    esac\n}\n"
           "complete -o filenames -F _scanctl scanctl\n");
}

static void zsh_option(const struct option_row *row)
{
    if (row->letter)
        printf(" \\\n        '(-%c --%s)'{-%c,--%s}'[", row->letter, row->name, row->letter, row->name);
    else
        printf(" \\\n        '--%s[", row->name);
    zsh_text(row->text);
    printf("]");
    if (row->argument && row->values == VALUE_FILE)
        printf(":%s:_files", row->argument);
    else if (row->argument) {
        printf(":%s:(", row->argument);
        values_print(row->values);
        printf(")");
    }
    printf("'");
}

/* What words of a command are, that are no options. */
static void words_print(const struct command *command)
{
    if (!strcmp(command->name, "completion"))
        printf("shell:(bash zsh fish)");
    else if (!strcmp(command->name, "help")) {
        printf("command:(");
        names_print();
        printf(")");
    } else
        printf("file:_files");
}

static void zsh_print(void)
{
    const struct command *command;
    printf("#compdef scanctl\n"
           "# Completion of scanctl for zsh: put it into a folder of $fpath as _scanctl.\n"
           "_scanctl()\n{\n    local -a commands=(");
    for (size_t i = 0; (command = command_at(i)); i++) {
        printf("\n        '%s:", command->name);
        zsh_text(command->text);
        printf("'");
    }
    printf("\n    )\n"
           "    if ((CURRENT == 2)); then\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    local command=$words[2]\n"
           "    shift words\n"
           "    ((CURRENT--))\n"
           "    case $command in\n");
    for (size_t i = 0; (command = command_at(i)); i++) {
        printf("    %s)\n        _arguments", command->name);
        for (const struct option_row *row = command->options; row->name; row++)
            zsh_option(row);
        printf(" \\\n        '*:");
        words_print(command);
        printf("'\n        ;;\n");
    }
    printf("    esac\n}\n_scanctl \"$@\"\n");
}

static void fish_option(const struct command *command, const struct option_row *row)
{
    printf("complete -c scanctl -n '__fish_seen_subcommand_from %s' -l %s", command->name, row->name);
    if (row->letter)
        printf(" -s %c", row->letter);
    if (row->argument && row->values == VALUE_FILE)
        printf(" -r -F");
    else if (row->argument) {
        printf(" -x -a '");
        values_print(row->values);
        printf("'");
    }
    printf(" -d '");
    fish_text(row->text);
    printf("'\n");
}

static void fish_print(void)
{
    const struct command *command;
    printf("# Completion of scanctl for fish: put it into ~/.config/fish/completions as scanctl.fish.\n");
    for (size_t i = 0; (command = command_at(i)); i++) {
        printf("complete -c scanctl -n __fish_use_subcommand -f -a %s -d '", command->name);
        fish_text(command->text);
        printf("'\n");
        for (const struct option_row *row = command->options; row->name; row++)
            fish_option(command, row);
    }
    printf("complete -c scanctl -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n"
           "complete -c scanctl -n '__fish_seen_subcommand_from help' -f -a '");
    names_print();
    printf("'\n");
}

int command_completion(int argc, char **argv, struct common_options *common, struct error *error)
{
    int result = options_parse(argc, argv, &(struct option_set){.table = common_options}, common, error);
    if (result || common->help)
        return result;
    const char *shell = optind == argc - 1 ? argv[optind] : "";
    if (!strcmp(shell, "bash"))
        bash_print();
    else if (!strcmp(shell, "zsh"))
        zsh_print();
    else if (!strcmp(shell, "fish"))
        fish_print();
    else
        return fail(error, EX_USAGE, "%s takes the name of one shell, and got \"%s\"%s; give bash, zsh or fish",
                    argv[0], optind < argc ? argv[optind] : "", optind < argc - 1 ? " and more" : "");
    return 0;
}
