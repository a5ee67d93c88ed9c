/* SPDX-License-Identifier: MIT */
/*
 * snapshot.h - the statistics of workers at one time.
 */
#ifndef PROXY_SNAPSHOT_H
#define PROXY_SNAPSHOT_H

#include "proxy/worker.h"

/**
 * struct snapshot - counters, and nothing else; all zero is an empty sum
 * @flows:	connections and what became of them
 * @relays:	calls, bytes, pipes and buffers; those ending in _max are sums of
 *		each worker's maximum
 * @recheck, @busy_poll: see net/recheck.h and net/busy_poll.h
 */
struct snapshot {
	struct stats flows;
	struct relay_stats relays;
	struct {
		counter added, polled, readable, ticks;
	} recheck;
	struct {
		counter polls, found, preempted, unprofitable;
	} busy_poll;
};

void snapshot_take(struct snapshot *ret, const struct worker *w);
void snapshot_add(struct snapshot *sum, const struct snapshot *s);

#endif /* PROXY_SNAPSHOT_H */
