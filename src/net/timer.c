/* SPDX-License-Identifier: MIT */
/*
 * timer.c - deadlines, kept in a binary heap, the earliest at the top.
 */
#include "net/timer.h"

#include <stdlib.h>

#include "base/util.h"

#define TIMERS_FIRST_ROOM 16

static void place(struct timers *ts, unsigned i, struct timer *t)
{
	ts->heap[i] = t;
	t->slot = i + 1;
}

/* Puts @t at the free place @i, or above it, where it belongs. */
static void rise(struct timers *ts, unsigned i, struct timer *t)
{
	while (i) {
		unsigned up = (i - 1) / 2;

		if (ts->heap[up]->due_ns <= t->due_ns)
			break;
		place(ts, i, ts->heap[up]);
		i = up;
	}
	place(ts, i, t);
}

/* Puts @t at the free place @i, or below it, where it belongs. */
static void sink(struct timers *ts, unsigned i, struct timer *t)
{
	for (;;) {
		unsigned down = 2 * i + 1;

		if (down + 1 < ts->n &&
		    ts->heap[down + 1]->due_ns < ts->heap[down]->due_ns)
			down++;
		if (down >= ts->n || t->due_ns <= ts->heap[down]->due_ns)
			break;
		place(ts, i, ts->heap[down]);
		i = down;
	}
	place(ts, i, t);
}

static int grow(struct timers *ts)
{
	unsigned room = ts->room ? 2 * ts->room : TIMERS_FIRST_ROOM;
	struct timer **heap = realloc(ts->heap, room * sizeof(*heap));

	if (!heap)
		return -ENOMEM;
	ts->heap = heap;
	ts->room = room;
	return 0;
}

/**
 * timer_set() - have @fn called once, at or soon after @due_ns
 *
 * A timer that was set already is moved.
 *
 * Return: 0, or -ENOMEM and nothing has changed; moving never fails.
 */
int timer_set(struct timers *ts, struct timer *t, uint64_t due_ns,
	      void (*fn)(struct timer *))
{
	if (!timer_is_set(t) && ts->n == ts->room) {
		int err = grow(ts);

		if (err)
			return err;
	}
	timer_clear(ts, t);
	t->due_ns = due_ns;
	t->fn = fn;
	rise(ts, ts->n++, t);
	return 0;
}

/* Forgets a deadline; harmless if it is not set. */
void timer_clear(struct timers *ts, struct timer *t)
{
	unsigned i = t->slot - 1;
	struct timer *last;

	if (!timer_is_set(t))
		return;
	t->slot = 0;
	last = ts->heap[--ts->n];
	if (last == t)
		return;
	if (i && last->due_ns < ts->heap[(i - 1) / 2]->due_ns)
		rise(ts, i, last);
	else
		sink(ts, i, last);
}

/* Return: when the first one is due, or UINT64_MAX if none is set. */
uint64_t timers_next(const struct timers *ts)
{
	return ts->n ? ts->heap[0]->due_ns : UINT64_MAX;
}

/* Calls those that are due; one that sets itself again waits its turn. */
void timers_run(struct timers *ts, uint64_t now)
{
	while (ts->n && ts->heap[0]->due_ns <= now) {
		struct timer *t = ts->heap[0];

		timer_clear(ts, t);
		t->fn(t);
	}
}

void timers_fini(struct timers *ts)
{
	free(ts->heap);
	*ts = (struct timers){ 0 };
}
