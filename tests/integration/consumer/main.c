/* A program as a user would write it. It expects that no daemon is there. */
#include <stdio.h>
#include <string.h>

#include <scand/scand.h>

int main(void)
{
    struct scand *daemon;
    int status = scand_connect("/nowhere/scand.sock", "consumer", &daemon);
    printf("%s: %s\n", scand_status_word(status), scand_connect_message());
    return status == SCAND_UNAVAILABLE && strstr(scand_connect_message(), "/nowhere/scand.sock") ? 0 : 1;
}
