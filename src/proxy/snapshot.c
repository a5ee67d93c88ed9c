/* SPDX-License-Identifier: MIT */
/*
 * snapshot.c - the statistics of workers at one time
 *
 * A worker takes its own between two batches, so that its counters agree with
 * each other: bytes read are delivered, dropped or held.
 */
#include "proxy/snapshot.h"

#include <assert.h>

static_assert(sizeof(struct snapshot) % sizeof(counter) == 0 &&
		      _Alignof(struct snapshot) == _Alignof(counter),
	      "counters alone");

static void add(void *sum, const void *from, size_t size)
{
	counter *to = sum;
	const counter *c = from;

	for (size_t i = 0; i < size / sizeof(counter); i++)
		counter_add(&to[i], counter_read(&c[i]));
}

/* By the thread of @w, or when that has ended. */
void snapshot_take(struct snapshot *ret, const struct worker *w)
{
	const struct recheck *recheck = &w->loop.recheck;
	const struct busy_poll *poll = &w->loop.busy_poll;

	*ret = (struct snapshot){ 0 };
	add(&ret->flows, &w->stats, sizeof(ret->flows));
	add(&ret->relays, &w->env.stats, sizeof(ret->relays));
	counter_set(&ret->recheck.added, counter_read(&recheck->added));
	counter_set(&ret->recheck.polled, counter_read(&recheck->polled));
	counter_set(&ret->recheck.readable, counter_read(&recheck->readable));
	counter_set(&ret->recheck.ticks, counter_read(&recheck->ticks));
	counter_set(&ret->busy_poll.polls, counter_read(&poll->polls));
	counter_set(&ret->busy_poll.found, counter_read(&poll->found));
	counter_set(&ret->busy_poll.preempted, counter_read(&poll->preempted));
	counter_set(&ret->busy_poll.unprofitable,
		    counter_read(&poll->unprofitable));
}

void snapshot_add(struct snapshot *sum, const struct snapshot *s)
{
	add(sum, s, sizeof(*sum));
}
