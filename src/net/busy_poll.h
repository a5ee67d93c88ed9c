/* SPDX-License-Identifier: MIT */
/*
 * look.h - going on looking for a while, rather than sleeping at once.
 */
#ifndef NET_BUSY_POLL_H
#define NET_BUSY_POLL_H

#include <stdbool.h>
#include <sys/epoll.h>

#include "base/counter.h"

/**
 * struct busy_poll - how one thread waits
 * @max_us:	microseconds that it may look before it sleeps; 0 is never
 * @adapts:	look as long as it pays, up to @max_us; else always so long
 * @us:		how long it looks now; 0 while it does not pay
 * @every:	while it does not pay: one wait in so many tries it
 * @streak:	tries in a row that paid
 * @waits:	in this stretch of sleep or of looks
 * @since_ns:	when that of looks began, or the last part of that of sleep
 * @stretches:	of looks, since there was one of sleep
 * @asleep_ns:	from wait to wait, in that one
 * @polls:	waits that began with looking; @found: and ended with it
 * @preempted:	of those: others took the cpu meanwhile
 * @unprofitable:	stretches of looks that made nobody quicker
 *
 * All zero never looks.
 */
struct busy_poll {
	unsigned max_us;
	bool adapts;
	unsigned us, every, streak, waits, stretches;
	uint64_t since_ns, asleep_ns;
	counter polls, found, preempted, unprofitable;
};

void busy_poll_init(struct busy_poll *l, unsigned max_us, bool adapts);
bool busy_poll_is_due(struct busy_poll *l);
int busy_poll_wait(struct busy_poll *l, int epfd, struct epoll_event *ev,
		   int room);

#endif /* NET_BUSY_POLL_H */
