/* SPDX-License-Identifier: MIT */
/*
 * bufs.c - buffers of one thread, for the copying conduit.
 */
#include "relay/bufs.h"

#include <stdlib.h>

#include "base/util.h"

#define DEFAULT_KEEP 4

static struct buf *buf_new(struct bufs *bs, size_t size)
{
	struct buf *b = malloc(sizeof(*b) + size);

	if (b)
		*b = (struct buf){
			.conduit = { .ops = &buf_ops,
				     .size = size,
				     .tally = bs->tally },
			.home = bs,
		};
	return b;
}

/**
 * bufs_init() - make a store, with one buffer in it
 *
 * Return: 0, or -ENOMEM.
 */
int bufs_init(struct bufs *bs, size_t size, struct tally *tally)
{
	*bs = (struct bufs){ .keep = DEFAULT_KEEP, .size = size, .tally = tally };
	bs->free = buf_new(bs, size);
	if (!bs->free)
		return -ENOMEM;
	bs->n_free = 1;
	return 0;
}

/* All that were taken must have been given back. */
void bufs_fini(struct bufs *bs)
{
	while (bs->free) {
		struct buf *b = bs->free;

		bs->free = b->next;
		free(b);
	}
	bs->n_free = 0;
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
	return lend(buf_stock(bs));
}

/* The same with room for @size bytes, for what a pipe held. */
struct buf *buf_take_sized(struct bufs *bs, size_t size)
{
	return size <= bs->size ? buf_take(bs) : lend(buf_new(bs, size));
}

/* The same as buf_take(), for who keeps buffers in store: it counts as lent
 * from buf_lend() on, or goes back by buf_unstock(). */
struct buf *buf_stock(struct bufs *bs)
{
	struct buf *b = bs->free;

	if (!b)
		return buf_new(bs, bs->size);
	bs->free = b->next;
	bs->n_free--;
	return b;
}

void buf_lend(struct buf *b)
{
	struct tally *t = b->home->tally;

	counter_add(&t->buffers_now, 1);
	counter_max(&t->buffers_most, counter_read(&t->buffers_now));
}

/* What is still inside is gone. */
void buf_give(struct buf *b)
{
	counter_sub(&b->home->tally->buffers_now, 1);
	buf_unstock(b);
}

void buf_unstock(struct buf *b)
{
	struct bufs *bs = b->home;

	if (b->conduit.size != bs->size || bs->n_free >= bs->keep) {
		free(b);
		return;
	}
	b->conduit.held = 0;
	b->head = 0;
	b->next = bs->free;
	bs->free = b;
	bs->n_free++;
}
