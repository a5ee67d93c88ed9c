/* SPDX-License-Identifier: MIT */
/*
 * spares.h - what a store keeps to lend again.
 */
#ifndef RELAY_SPARES_H
#define RELAY_SPARES_H

#include "base/list.h"
#include "net/loop.h"

/**
 * struct spares - things that nobody holds just now
 * @free:	last in, first out: what was used last, and is warm, lies last
 * @n:		how many; @fewest: and the fewest since the last trim
 * @loop:	the thread's
 * @trim:	set while there is more than one
 * @drop:	frees one, which is in no list
 */
struct spares {
	struct list free;
	unsigned n, fewest;
	struct loop *loop;
	struct timer trim;
	void (*drop)(struct list *node);
};

void spares_init(struct spares *s, struct loop *loop,
		 void (*drop)(struct list *node));
void spares_fini(struct spares *s);

struct list *spare_take(struct spares *s);
void spare_give(struct spares *s, struct list *node);
unsigned spares_drop_all(struct spares *s);

#endif /* RELAY_SPARES_H */
