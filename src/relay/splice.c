/* SPDX-License-Identifier: MIT */
/*
 * splice.c - a pipe as conduit: the bytes stay in the kernel
 *
 * The only file that calls splice(2). What it leans on, each pinned by a test
 * under test/kernel: SPLICE_F_NONBLOCK covers the pipe alone, so both sockets
 * are O_NONBLOCK (K10); the drain asks for exactly what is held, never for
 * more, or the kernel marks the tail as "more to come" and it waits 200 ms
 * (K9); SPLICE_F_MORE does the same on purpose and is never set (K8).
 */
#include <assert.h>
#include <fcntl.h>

#include "base/probe.h"
#include "base/util.h"
#include "relay/pipes.h"

static ssize_t splice_fill(struct conduit *c, int fd)
{
	ssize_t n = splice(fd, NULL, to_pipe(c)->in, NULL, c->size,
			   SPLICE_F_NONBLOCK);

	relay_call(&c->stats->splice_in, n > 0 ? (uint64_t)n : 0);
	if (n < 0)
		return -errno;
	c->held = (size_t)n;
	return n;
}

static ssize_t splice_drain(struct conduit *c, int fd)
{
	ssize_t n;

	assert(c->held); /* a length of 0 looks like an end (K6) */
	if (to_pipe(c)->broken)
		return -EIO;
	n = splice(to_pipe(c)->out, NULL, fd, NULL, c->held, SPLICE_F_NONBLOCK);
	relay_call(&c->stats->splice_out, n > 0 ? (uint64_t)n : 0);
	if (n < 0)
		return -errno;
	c->held -= (size_t)n;
	return n;
}

static void splice_give(struct conduit *c)
{
	pipe_give(to_pipe(c));
}

const struct conduit_ops pipe_ops = {
	.fill = splice_fill,
	.drain = splice_drain,
	.give = splice_give,
	.is_pipe = true,
};

/* Reads all that is held: it is in the pipe, so nothing is waited for. */
static bool read_out(struct pipe *p, struct buf *b)
{
	struct conduit *c = &p->conduit;

	while (c->held) {
		ssize_t n = read(p->out, b->data + b->conduit.held, c->held);

		relay_call(&c->stats->spill, n > 0 ? (uint64_t)n : 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		b->conduit.held += (size_t)n;
		c->held -= (size_t)n;
	}
	return true;
}

/**
 * pipe_spill() - move what a lent pipe holds into a buffer (K34)
 *
 * Afterwards the borrower holds the buffer, and the pipe has been given back.
 *
 * Return: 0; -ENOMEM when there is no buffer or read(2) refused, and nothing
 *	has changed; or -EIO when it failed half way, and the stream is broken.
 */
int pipe_spill(struct pipe *p, struct bufs *bufs)
{
	struct buf *b;

	if (p->broken)
		return -EIO;
	b = buf_take_sized(bufs, p->conduit.held);
	if (!b)
		return -ENOMEM;
	if (!read_out(p, b)) {
		/* Nobody has seen this happen; but then, no silent hole. */
		p->broken = b->conduit.held;
		counter_add(&p->conduit.stats->dropped[DROP_pipe_broken],
			    b->conduit.held);
		buf_give(b);
		return p->broken ? -EIO : -ENOMEM;
	}
	probe(spill, p, b->conduit.held);
	*p->holder = &b->conduit;
	pipe_give(p);
	return 0;
}
