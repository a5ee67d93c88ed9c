/* SPDX-License-Identifier: MIT */
/*
 * bufs.h - buffers of one thread, for the copying conduit.
 */
#ifndef RELAY_BUFS_H
#define RELAY_BUFS_H

#include "relay/conduit.h"

/**
 * struct buf - user memory with the bytes at [@head, @head + held)
 */
struct buf {
	struct conduit conduit;
	struct bufs *home;
	struct buf *next;
	size_t head;
	unsigned char data[];
};

/**
 * struct bufs - the store
 * @free:	last in, first out, so that what is lent is warm; at rest there
 *		is one, the thread's own for ever, and a lane takes another
 *		only while its sink refuses bytes
 * @keep:	more than this many free ones are not worth keeping
 * @size:	bytes a buffer
 */
struct bufs {
	struct buf *free;
	unsigned n_free, keep;
	size_t size;
	struct tally *tally;
};

int bufs_init(struct bufs *bs, size_t size, struct tally *tally);
void bufs_fini(struct bufs *bs);

struct buf *buf_take(struct bufs *bs);
struct buf *buf_take_sized(struct bufs *bs, size_t size);
void buf_give(struct buf *b);

struct buf *buf_stock(struct bufs *bs);
void buf_lend(struct buf *b);
void buf_unstock(struct buf *b);

/* copy.c */
extern const struct conduit_ops buf_ops;

#endif /* RELAY_BUFS_H */
