/* SPDX-License-Identifier: MIT */
/*
 * look.c - going on looking for a while, rather than sleeping at once
 *
 * DOC: Theory of operation
 *
 * To fall asleep and be woken costs several times what a small message does,
 * and most where an idle cpu has to be woken for it. A thread that expects the
 * next message within microseconds is better off looking for it. But looking
 * for what does not come is wasted, and takes the cpu from whoever would send
 * it. So a thread learns:
 *
 *	while it does not pay, one wait in many tries it: a few tries in a row
 *	  that find something make it the rule, one that does not makes the
 *	  next try rarer;
 *	while it pays, each look that finds nothing halves the time, down to
 *	  none, and each that does doubles it, up to the most;
 *	it gives way to others at each turn (sched_yield(2)); when one of them
 *	  really took the cpu, it stops at once, for longer each time.
 *
 * What is there at the first look proves nothing: a sleep would have ended at
 * once too.
 *
 * At rest it costs nothing: a thread without events does not wake up to look.
 * The clock and the count of switches are read only in here, when there was
 * nothing to do at once.
 */
#include "net/look.h"

#include <sched.h>
#include <sys/resource.h>

#include "base/util.h"

/* Tries in a row that make it the rule. */
#define LEARN 3

/* One wait in so many is a try: at first, and at most after failures. */
#define EVERY_FIRST 16
#define EVERY_MOST  1024

/* Not worth the calls below this. */
#define LEAST_US 6

/* What takes longer than the most divided by this costs more than it saves. */
#define LATE 2

void look_init(struct look *l, unsigned most_us, bool adapts)
{
	*l = (struct look){
		.most_us = most_us,
		.adapts = adapts,
		.us = adapts ? 0 : most_us,
		.every = EVERY_FIRST,
	};
}

/* Whether to look before this wait. */
bool look_is_due(struct look *l)
{
	if (!l->most_us)
		return false;
	return l->us || l->streak || ++l->waits >= l->every;
}

static void look_rarely(struct look *l, unsigned every)
{
	l->us = l->streak = l->waits = 0;
	l->every = every < EVERY_MOST ? every : EVERY_MOST;
}

static void learn_paid(struct look *l)
{
	if (l->us) {
		l->us = 2 * l->us < l->most_us ? 2 * l->us : l->most_us;
		l->every -= l->every > EVERY_FIRST;
	} else if (++l->streak >= LEARN) {
		l->us = l->most_us;
	}
}

static void learn_missed(struct look *l)
{
	if (!l->us)
		look_rarely(l, 2 * l->every);
	else if (l->us / 2 < LEAST_US)
		look_rarely(l, l->every);
	else
		l->us /= 2;
}

/* Whether others had this thread's cpu since this was last asked. */
static bool was_switched(struct look *l)
{
	struct rusage use;
	long before = l->switches;

	if (getrusage(RUSAGE_THREAD, &use))
		return false;
	l->switches = use.ru_nivcsw;
	return l->switches != before;
}

/* A look that began with nothing took @ns, and @found something or not. */
static void learn(struct look *l, bool found, uint64_t ns)
{
	if (was_switched(l)) {
		counter_add(&l->crowded, 1);
		look_rarely(l, 2 * l->every);
	} else if (found && ns <= 1000ull * l->most_us / LATE) {
		learn_paid(l);
	} else {
		learn_missed(l);
	}
}

/**
 * look_wait() - look until there is something, or the time is up
 *
 * Only when look_is_due() has said so.
 *
 * Return: as epoll_wait(2) with no time to wait.
 */
int look_wait(struct look *l, int epfd, struct epoll_event *ev, int room)
{
	uint64_t most = 1000ull * (l->us ? l->us : l->most_us);
	uint64_t start = 0, took = 0;
	int n = epoll_wait(epfd, ev, room, 0);

	counter_add(&l->looks, 1);
	if (!n)
		start = now_ns();
	while (!n && took < most) {
		sched_yield();
		n = epoll_wait(epfd, ev, room, 0);
		took = now_ns() - start;
	}
	counter_add(&l->found, n > 0);
	if (start && l->adapts)
		learn(l, n > 0, took);
	return n;
}
