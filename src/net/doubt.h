/* SPDX-License-Identifier: MIT */
/*
 * doubt.h - sockets that seem to be empty, without a proof.
 */
#ifndef NET_DOUBT_H
#define NET_DOUBT_H

#include "base/counter.h"
#include "base/list.h"
#include "net/timer.h"

struct watch;

/**
 * struct doubts - the watches of one loop that are in doubt; see doubt.c
 * @fresh, @old: by watch.doubt; @old since before the last tick, if it ticks
 * @tick:	set while it ticks
 * @turns:	in which there were doubts and nobody was asked, in a row
 * @raised_before: @raised at the last tick
 * @asked_before: @asked at @since_ns, when the clock was last looked at
 * @raised:	times that one was put in doubt
 * @asked:	times that poll(2) was asked about one: others were settled by
 *		an edge before that
 * @wrong:	of those: there was something to read by then
 * @ticks:	times that @tick went off
 */
struct doubts {
	struct list fresh, old;
	struct timer tick;
	unsigned turns;
	uint64_t raised_before, asked_before, since_ns;
	counter raised, asked, wrong, ticks;
};

static inline bool doubts_any(const struct doubts *ds)
{
	return !list_empty(&ds->fresh) || !list_empty(&ds->old);
}

void doubts_init(struct doubts *ds);
bool doubt_raise(struct doubts *ds, struct watch *w, bool faint);
void doubt_proven(struct doubts *ds, struct watch *w);
void doubt_settle(struct watch *w);
bool doubts_turn(struct doubts *ds, bool sleeps);

#endif /* NET_DOUBT_H */
