/* SPDX-License-Identifier: MIT */
/*
 * bufs.c - buffers of one thread, for the copying conduit.
 */
#include "relay/bufs.h"

#include <stdlib.h>

#include "base/probe.h"
#include "base/util.h"

/* More than this many free ones are not worth keeping. */
#define BUFS_KEPT 4

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
	*bs = (struct bufs){ .size = size, .tally = tally };
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

static struct buf *lend(struct bufs *bs, struct buf *b)
{
	if (b) {
		probe(borrow, b, false, b->conduit.size);
		counter_add(&bs->tally->buffers_now, 1);
		counter_max(&bs->tally->buffers_most,
			    counter_read(&bs->tally->buffers_now));
	}
	return b;
}

/* Return: an empty buffer of the usual size, or NULL for want of memory. */
struct buf *buf_take(struct bufs *bs)
{
	struct buf *b = bs->free;

	if (!b)
		return lend(bs, buf_new(bs, bs->size));
	bs->free = b->next;
	bs->n_free--;
	return lend(bs, b);
}

/* The same with room for @size bytes, for what a pipe held. */
struct buf *buf_take_sized(struct bufs *bs, size_t size)
{
	return size <= bs->size ? buf_take(bs) : lend(bs, buf_new(bs, size));
}

/* What is still inside is gone. */
void buf_give(struct buf *b)
{
	struct bufs *bs = b->home;

	probe(give, b, false, b->conduit.held);
	counter_sub(&bs->tally->buffers_now, 1);
	if (b->conduit.size != bs->size || bs->n_free >= BUFS_KEPT) {
		free(b);
		return;
	}
	b->conduit.held = 0;
	b->head = 0;
	b->next = bs->free;
	bs->free = b;
	bs->n_free++;
}
