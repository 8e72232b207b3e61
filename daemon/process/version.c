#include "version.h"

#include "commit.h" /* made by commit.cmake */

const char version_text[] = "scand " SCAND_RELEASE "\ncommit " SCAND_COMMIT ", built " SCAND_BUILT_WITH;
