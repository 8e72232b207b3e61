/* A program as a user would write it. It expects that no daemon is there: without one it fails, unless it computes by
 * itself. */
#include <stdio.h>
#include <string.h>

#include <scand/scand.h>

int main(void)
{
    struct scand *daemon;
    int status = scand_connect("/nowhere/scand.sock", "consumer", &daemon);
    printf("scand %s, built with %s\n", scand_version(), SCAND_VERSION_TEXT);
    printf("%s: %s\n", scand_status_word(status), scand_connect_message());
    if (status == SCAND_OK)
        scand_disconnect(daemon);
    return status == SCAND_UNAVAILABLE && strcmp(scand_version(), SCAND_VERSION_TEXT) == 0 &&
                   strstr(scand_connect_message(), "/nowhere/scand.sock")
               ? 0
               : 1;
}
