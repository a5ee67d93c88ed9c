/* SPDX-License-Identifier: MIT */
/*
 * doubt.h - sockets that seem to be empty, without a proof.
 */
#ifndef NET_RECHECK_H
#define NET_RECHECK_H

#include "base/counter.h"
#include "base/list.h"
#include "net/timer.h"

struct watch;

/**
 * struct recheck - the watches of one loop that are in doubt; see doubt.c
 * @fresh, @old: by watch.recheck; @old since before the last tick, if it ticks
 * @tick:	set while it ticks
 * @turns:	in which there were doubts and nobody was asked, in a row
 * @added_before: @added at the last tick
 * @polled_before: @polled at @since_ns, when the clock was last looked at
 * @added:	times that one was put in doubt
 * @polled:	times that poll(2) was asked about one: others were settled by
 *		an edge before that
 * @readable:	of those: there was something to read by then
 * @ticks:	times that @tick went off
 */
struct recheck {
	struct list fresh, old;
	struct timer tick;
	unsigned turns;
	uint64_t added_before, polled_before, since_ns;
	counter added, polled, readable, ticks;
};

static inline bool recheck_pending(const struct recheck *ds)
{
	return !list_empty(&ds->fresh) || !list_empty(&ds->old);
}

void recheck_init(struct recheck *ds);
bool recheck_add(struct recheck *ds, struct watch *w, bool faint);
void recheck_confirmed(struct recheck *ds, struct watch *w);
void recheck_cancel(struct watch *w);
bool recheck_turn(struct recheck *ds, bool sleeps);

#endif /* NET_RECHECK_H */
