/* SPDX-License-Identifier: MIT */
/*
 * bufs.c - buffers of one thread, for the copying conduit
 *
 * They are mapped, not allocated: what malloc(3) is given back after a rush it
 * keeps for as long as anything smaller lies above it, which may be for ever.
 */
#include "relay/bufs.h"

#include <sys/mman.h>

#include "base/probe.h"
#include "base/util.h"

static size_t mapped(size_t size)
{
	return sizeof(struct buf) + size;
}

static struct buf *buf_new(struct bufs *bs, size_t size)
{
	void *at = mmap(NULL, mapped(size), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct buf *b = at;

	if (at == MAP_FAILED)
		return NULL;
	*b = (struct buf){
		.conduit = { .ops = &buf_ops, .size = size, .stats = bs->stats },
		.home = bs,
	};
	list_init(&b->node);
	return b;
}

static void buf_free(struct buf *b)
{
	(void)munmap(b, mapped(b->conduit.size));
}

static void buf_drop(struct list *node)
{
	buf_free(container_of(node, struct buf, node));
}

/**
 * bufs_init() - make a store, with one buffer in it
 * @size:	bytes a buffer
 * @loop:	the thread's
 *
 * Return: 0, or -ENOMEM.
 */
int bufs_init(struct bufs *bs, size_t size, struct relay_stats *stats,
	      struct loop *loop)
{
	struct buf *b;

	*bs = (struct bufs){ .size = size, .stats = stats };
	freelist_init(&bs->freelist, loop, buf_drop);
	b = buf_new(bs, size);
	if (!b)
		return -ENOMEM;
	freelist_give(&bs->freelist, &b->node);
	return 0;
}

/* All that were taken must have been given back. */
void bufs_fini(struct bufs *bs)
{
	freelist_fini(&bs->freelist);
}

static struct buf *lend(struct buf *b)
{
	if (b)
		buf_lend(b);
	return b;
}

/* Return: an empty buffer of the usual size, or NULL for want of memory. */
struct buf *buf_take(struct bufs *bs)
{
	return lend(buf_provide(bs));
}

/* The same with room for @size bytes, for what a pipe held. */
struct buf *buf_take_sized(struct bufs *bs, size_t size)
{
	return size <= bs->size ? buf_take(bs) : lend(buf_new(bs, size));
}

/* The same as buf_take(), for who keeps buffers in store: it counts as lent
 * from buf_lend() on, or goes back by buf_withdraw(). */
struct buf *buf_provide(struct bufs *bs)
{
	struct list *node = freelist_take(&bs->freelist);

	return node ? container_of(node, struct buf, node)
		    : buf_new(bs, bs->size);
}

void buf_lend(struct buf *b)
{
	struct relay_stats *t = b->home->stats;

	probe(borrow, b, false, b->conduit.size);
	counter_add(&t->buffers_now, 1);
	counter_max(&t->buffers_max, counter_read(&t->buffers_now));
}

/* What is still inside is gone. */
void buf_give(struct buf *b)
{
	probe(give, b, false, b->conduit.held);
	counter_sub(&b->home->stats->buffers_now, 1);
	buf_withdraw(b);
}

void buf_withdraw(struct buf *b)
{
	struct bufs *bs = b->home;

	if (b->conduit.size != bs->size) {
		buf_free(b);
		return;
	}
	b->conduit.held = 0;
	b->head = 0;
	freelist_give(&bs->freelist, &b->node);
}
