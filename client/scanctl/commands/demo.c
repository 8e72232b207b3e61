#include "client/scanctl/commands/commands.h"
#include "client/scanctl/commands/demo_bounds.h"

int command_demo(int argc, char **argv, struct common_options *common, struct error *error)
{
    return demo_command(argc, argv, common, bounds_check, "each sample within the rounding error of its sums", error);
}
