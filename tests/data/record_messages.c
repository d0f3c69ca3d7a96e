/* Records the messages that an MPI library hands to UCX, for tests/library_messages.py.
 *
 * Preloaded, these functions stand before those of UCX. A line is `send BYTES` or `receive TAG`, in
 * the order of the calls. The rank that a message comes from is a part of the tag of its receive. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

/* File of the records; NULL while nothing is recorded. The job sets it. */
FILE *opticoll_records;

static void *of_ucx(const char *name)
{
    return dlsym(dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD), name);
}

void *ucp_tag_send_nbx(void *peer, const void *data, size_t bytes, uint64_t tag, const void *options)
{
    static void *(*send)(void *, const void *, size_t, uint64_t, const void *);
    if (!send)
        *(void **)&send = of_ucx("ucp_tag_send_nbx");
    if (opticoll_records)
        fprintf(opticoll_records, "send %zu\n", bytes);
    return send(peer, data, bytes, tag, options);
}

void *ucp_tag_recv_nbx(void *worker, void *data, size_t bytes, uint64_t tag, uint64_t mask,
                       const void *options)
{
    static void *(*receive)(void *, void *, size_t, uint64_t, uint64_t, const void *);
    if (!receive)
        *(void **)&receive = of_ucx("ucp_tag_recv_nbx");
    if (opticoll_records)
        fprintf(opticoll_records, "receive %llu\n", (unsigned long long)tag);
    return receive(worker, data, bytes, tag, mask, options);
}
