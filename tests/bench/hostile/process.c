#include "tests/bench/hostile/process.h"
#include "protocol/own_descriptors.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/bench/client.h"

#define NICER 10

/* Makes the process another user's; PR_SET_PDEATHSIG is set after that, since a change of user resets it. */
static int become(unsigned user)
{
    own_descriptors_raise_limit();
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICER);
    if (geteuid() == 0 && user != PROCESS_SELF && client_become(user))
        return 1;
    return prctl(PR_SET_PDEATHSIG, SIGKILL);
}

pid_t process_start(void (*work)(const void *argument), const void *argument, unsigned user)
{
    pid_t process = fork();
    if (process == 0) {
        if (become(user))
            _exit(1);
        work(argument);
        _exit(0);
    }
    if (process < 0)
        client_fail("fork", strerror(errno));
    return process;
}

void *process_share(size_t size_bytes)
{
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED)
        return memory;
    client_fail("memory", strerror(errno));
    exit(71);
}

void process_unshare(void *memory, size_t size_bytes)
{
    munmap(memory, size_bytes);
}
