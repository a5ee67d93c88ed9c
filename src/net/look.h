/* SPDX-License-Identifier: MIT */
/*
 * look.h - going on looking for a while, rather than sleeping at once.
 */
#ifndef NET_LOOK_H
#define NET_LOOK_H

#include <stdbool.h>
#include <sys/epoll.h>

#include "base/counter.h"

/**
 * struct look - how one thread waits
 * @most_us:	microseconds that it may look before it sleeps; 0 is never
 * @adapts:	look as long as it pays, up to @most_us; else always so long
 * @us:		how long it looks now; 0 while it does not pay
 * @every:	while it does not pay: one wait in so many tries it
 * @streak:	tries in a row that paid
 * @waits:	in this stretch of sleep or of looks
 * @since_ns:	when that of looks began, or the last part of that of sleep
 * @stretches:	of looks, since there was one of sleep
 * @asleep_ns:	from wait to wait, in that one
 * @looks:	waits that began with looking; @found: and ended with it
 * @crowded:	of those: others took the cpu meanwhile
 * @vain:	stretches of looks that made nobody quicker
 *
 * All zero never looks.
 */
struct look {
	unsigned most_us;
	bool adapts;
	unsigned us, every, streak, waits, stretches;
	uint64_t since_ns, asleep_ns;
	counter looks, found, crowded, vain;
};

void look_init(struct look *l, unsigned most_us, bool adapts);
bool look_is_due(struct look *l);
int look_wait(struct look *l, int epfd, struct epoll_event *ev, int room);

#endif /* NET_LOOK_H */
