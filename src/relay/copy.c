/* SPDX-License-Identifier: MIT */
/*
 * copy.c - a buffer as conduit: works between any two stream sockets.
 */
#include <sys/socket.h>

#include "base/util.h"
#include "relay/bufs.h"

static struct buf *to_buf(struct conduit *c)
{
	return container_of(c, struct buf, conduit);
}

static ssize_t copy_fill(struct conduit *c, int fd)
{
	struct buf *b = to_buf(c);
	ssize_t n = recv(fd, b->data, c->size, 0);

	relay_call(&c->stats->recv, n > 0 ? (uint64_t)n : 0);
	if (n < 0)
		return -errno;
	b->head = 0;
	c->held = (size_t)n;
	return n;
}

static ssize_t copy_drain(struct conduit *c, int fd)
{
	struct buf *b = to_buf(c);
	ssize_t n = send(fd, b->data + b->head, c->held, MSG_NOSIGNAL);

	relay_call(&c->stats->send, n > 0 ? (uint64_t)n : 0);
	if (n < 0)
		return -errno;
	b->head += (size_t)n;
	c->held -= (size_t)n;
	return n;
}

static void copy_give(struct conduit *c)
{
	buf_give(to_buf(c));
}

const struct conduit_ops buf_ops = {
	.fill = copy_fill,
	.drain = copy_drain,
	.give = copy_give,
	.short_is_empty = true,
};
