/* SPDX-License-Identifier: MIT */
/*
 * spares.c - what a store keeps to lend again
 *
 * Whatever comes back is kept, so that a rush that goes on allocates nothing.
 * What nobody has needed for a while goes back to the kernel, all but one: at
 * rest a thread holds one pipe and one buffer.
 */
#include "relay/freelist.h"

#include "base/util.h"

/* Those that nobody needed for so long are dropped. */
#define TRIM_NS (5 * NS_PER_SEC)

/**
 * freelist_init() - begin with none
 * @loop:	the thread's
 * @drop:	frees one, which is in no list
 */
void freelist_init(struct freelist *s, struct loop *loop,
		   void (*drop)(struct list *node))
{
	*s = (struct freelist){ .loop = loop, .drop = drop };
	list_init(&s->free);
}

static void drop(struct freelist *s, struct list *node)
{
	list_remove(node);
	s->n--;
	s->drop(node);
}

/* Return: how many were dropped. */
unsigned freelist_drop_all(struct freelist *s)
{
	unsigned n = s->n;

	while (s->n)
		drop(s, s->free.next);
	s->fewest = 0;
	return n;
}

void freelist_fini(struct freelist *s)
{
	loop_untimer(s->loop, &s->trim);
	freelist_drop_all(s);
}

/* Return: the one that came last, or NULL. */
struct list *freelist_take(struct freelist *s)
{
	struct list *node = s->free.prev;

	if (!s->n)
		return NULL;
	list_remove(node);
	if (--s->n < s->fewest)
		s->fewest = s->n;
	return node;
}

/* Drops those that nobody has needed since the last time. */
static void trim(struct timer *t)
{
	struct freelist *s = container_of(t, struct freelist, trim);
	unsigned idle = s->fewest;

	/* The coldest lie first. */
	while (idle-- > 0 && s->n > 1)
		drop(s, s->free.next);
	s->fewest = s->n;
	if (s->n > 1)
		(void)loop_timer(s->loop, t, now_ns() + TRIM_NS, trim);
}

/* @node is in no list. */
void freelist_give(struct freelist *s, struct list *node)
{
	list_append(&s->free, node);
	s->n++;
	if (s->n > 1 && !timer_is_set(&s->trim))
		(void)loop_timer(s->loop, &s->trim, now_ns() + TRIM_NS, trim);
}
