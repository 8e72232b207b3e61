/* Calls that outlive a broken connection, and are repeated where that is harmless. */
#include <errno.h>

#include "client/lib/internal.h"

static bool call_is_harmless(enum method method)
{
    return method == METHOD_server_ping || method == METHOD_server_stats || method == METHOD_server_devices ||
           method == METHOD_server_kernels || method == METHOD_server_histograms || method == METHOD_server_jobs ||
           method == METHOD_server_clients || method == METHOD_server_users || method == METHOD_server_trace ||
           method == METHOD_buffer_create || method == METHOD_buffer_import || method == METHOD_buffer_import_file ||
           method == METHOD_buffer_import_device || method == METHOD_group_begin;
}

int call_run(struct scand *daemon, struct call *call)
{
    /* A group that nobody knows of would keep its label. */
    call->is_interruptible = call_is_harmless(call->method) && call->method != METHOD_group_begin;
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        int code = session_ready(daemon);
        if (code)
            return code;
        code = call_try(daemon, call);
        if (code != -EPIPE)
            return code;
        session_pause(daemon, (unsigned)attempt + 1);
        if (!call_is_harmless(call->method))
            return session_fail(daemon, -EOWNERDEAD,
                                "the connection broke before the daemon answered %s: whether it was done is unknown",
                                method_name(call->method));
    }
    return session_fail(daemon, -EOWNERDEAD,
                        "the connection broke %d times while the daemon was to answer %s: its log says why",
                        ATTEMPTS_MAX, method_name(call->method));
}

int import_run(struct scand_buffer *buffer)
{
    struct import import;
    import_prepare(&import, buffer);
    int code = call_run(buffer->daemon, &import.call);
    if (code == 0)
        import_apply(&import, buffer);
    return code;
}
