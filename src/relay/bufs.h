/* SPDX-License-Identifier: MIT */
/*
 * bufs.h - buffers of one thread, for the copying conduit.
 */
#ifndef RELAY_BUFS_H
#define RELAY_BUFS_H

#include "relay/conduit.h"
#include "relay/freelist.h"

/**
 * struct buf - user memory with the bytes at [@head, @head + held)
 * @node:	in bufs.freelist, or in none
 */
struct buf {
	struct conduit conduit;
	struct bufs *home;
	struct list node;
	size_t head;
	unsigned char data[];
};

/**
 * struct bufs - the store
 * @freelist:	the free ones; at rest there is one, the thread's own for ever,
 *		and a lane takes another only while its sink refuses bytes
 * @size:	bytes a buffer
 */
struct bufs {
	struct freelist freelist;
	size_t size;
	struct relay_stats *stats;
};

int bufs_init(struct bufs *bs, size_t size, struct relay_stats *stats,
	      struct loop *loop);
void bufs_fini(struct bufs *bs);

struct buf *buf_take(struct bufs *bs);
struct buf *buf_take_sized(struct bufs *bs, size_t size);
void buf_give(struct buf *b);

struct buf *buf_provide(struct bufs *bs);
void buf_lend(struct buf *b);
void buf_withdraw(struct buf *b);

/* copy.c */
extern const struct conduit_ops buf_ops;

#endif /* RELAY_BUFS_H */
