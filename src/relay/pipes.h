/* SPDX-License-Identifier: MIT */
/*
 * pipes.h - pipes of one thread, for the splicing conduit.
 */
#ifndef RELAY_PIPES_H
#define RELAY_PIPES_H

#include "relay/bufs.h"
#include "relay/freelist.h"

/* A pipe with less room than 16 pages costs more calls than it saves copies. */
#define PIPE_SIZE_MIN 65536
#define PIPE_SIZE_MAX (1 << 30)

/* Bytes of its size for which a pipe has a slot. */
#define PIPE_SLOT 4096

/**
 * struct pipe - a kernel pipe
 * @in, @out:	write end and read end, both nonblocking
 * @node:	in pipes.freelist, in pipes.stalled, or in neither
 * @holder:	the pointer through which its borrower holds it, so that a
 *		pipe can be taken from a lane whose sink has stalled
 * @broken:	some of its bytes were lost on the way out of it
 * @since:	the turn in which its sink last refused bytes
 */
struct pipe {
	struct conduit conduit;
	struct pipes *home;
	int in, out;
	struct list node;
	struct conduit **holder;
	bool broken;
	uint64_t since;
};

/**
 * struct pipes - the store
 * @freelist:	the free ones
 * @stalled:	lent, and the sink refuses bytes; the longest stalled first
 * @size:	bytes wished for a pipe
 * @limit:	how many there may be at once, free or lent
 * @n:		how many there are
 * @holdoff:	borrowings to go before the kernel is asked for a new one
 *		again, after it has refused; @refused: with what
 * @bufs:	where what a stalled pipe held is put
 * @loop:	the thread's; its count of turns measures age without a clock
 */
struct pipes {
	struct freelist freelist;
	struct list stalled;
	size_t size;
	unsigned limit, n;
	unsigned holdoff;
	enum relay_fallback refused;
	struct bufs *bufs;
	struct relay_stats *stats;
	struct loop *loop;
};

void pipes_init(struct pipes *ps, size_t size, unsigned limit,
		struct bufs *bufs, struct relay_stats *stats, struct loop *loop);
void pipes_fini(struct pipes *ps);

enum relay_fallback pipe_take(struct pipes *ps, struct conduit **holder);
void pipe_give(struct pipe *p);
void pipe_stalls(struct pipe *p);
unsigned pipes_close_free(struct pipes *ps);
size_t pipes_probe(struct pipes *ps);
unsigned pipes_quota(size_t size);

/* splice.c */
extern const struct conduit_ops pipe_ops;
int pipe_spill(struct pipe *p, struct bufs *bufs);

static inline struct pipe *to_pipe(struct conduit *c)
{
	return (struct pipe *)c; /* its first member */
}

#endif /* RELAY_PIPES_H */
