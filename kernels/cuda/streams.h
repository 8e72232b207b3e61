/*
 * The streams of a device that have launched something. Launches of a stream run in order, one after the other, so that
 * launches which leave a place as they found it need one for each stream, and never meet another's there, however long
 * they wait. Plain C, so that it is tested without a GPU.
 */
#ifndef KERNELS_CUDA_STREAMS_H
#define KERNELS_CUDA_STREAMS_H

#define STREAMS_MAX 256

struct streams {
    const void *known[STREAMS_MAX];
    int count;
};

/* The stream's number, always the same; -1: it is new, and there is none left. Destroyed streams keep theirs. */
static inline int streams_number(struct streams *streams, const void *stream)
{
    for (int i = 0; i < streams->count; i++)
        if (streams->known[i] == stream)
            return i;
    if (streams->count == STREAMS_MAX)
        return -1;
    streams->known[streams->count] = stream;
    return streams->count++;
}

/* Forgets all streams, when nothing is on its way on any of them. */
static inline void streams_forget(struct streams *streams)
{
    streams->count = 0;
}

#endif
