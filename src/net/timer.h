/* SPDX-License-Identifier: MIT */
/*
 * timer.h - deadlines, kept in a heap.
 *
 * Times are now_ns() nanoseconds. A timer that is not set costs nothing.
 */
#ifndef NET_TIMER_H
#define NET_TIMER_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct timer - one deadline, embedded in its owner
 * @due_ns:	when
 * @slot:	1 + its place in the heap, 0 if it is not set
 * @fn:		called once, after it has been taken out of the heap
 *
 * All zero is a timer that is not set.
 */
struct timer {
	uint64_t due_ns;
	unsigned slot;
	void (*fn)(struct timer *t);
};

struct timers {
	struct timer **heap;
	unsigned n, room;
};

void timers_fini(struct timers *ts);
int timer_set(struct timers *ts, struct timer *t, uint64_t due_ns,
	      void (*fn)(struct timer *));
void timer_clear(struct timers *ts, struct timer *t);
uint64_t timers_next(const struct timers *ts);
void timers_run(struct timers *ts, uint64_t now);

static inline bool timer_is_set(const struct timer *t)
{
	return t->slot != 0;
}

#endif /* NET_TIMER_H */
