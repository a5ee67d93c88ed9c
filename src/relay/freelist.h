/* SPDX-License-Identifier: MIT */
/*
 * spares.h - what a store keeps to lend again.
 */
#ifndef RELAY_FREELIST_H
#define RELAY_FREELIST_H

#include "base/list.h"
#include "net/loop.h"

/**
 * struct freelist - things that nobody holds just now
 * @free:	last in, first out: what was used last, and is warm, lies last
 * @n:		how many; @fewest: and the fewest since the last trim
 * @loop:	the thread's
 * @trim:	set while there is more than one
 * @drop:	frees one, which is in no list
 */
struct freelist {
	struct list free;
	unsigned n, fewest;
	struct loop *loop;
	struct timer trim;
	void (*drop)(struct list *node);
};

void freelist_init(struct freelist *s, struct loop *loop,
		   void (*drop)(struct list *node));
void freelist_fini(struct freelist *s);

struct list *freelist_take(struct freelist *s);
void freelist_give(struct freelist *s, struct list *node);
unsigned freelist_drop_all(struct freelist *s);

#endif /* RELAY_FREELIST_H */
