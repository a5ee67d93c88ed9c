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
 *	while it sleeps, one wait in many tries it: a few tries in a row that
 *	  find something make it the rule, one that does not makes the next try
 *	  rarer;
 *	while it is the rule, each look that finds nothing halves the time, down
 *	  to none, and each that does doubles it, up to the most;
 *	it gives way to others at each turn (sched_yield(2)); when one of them
 *	  really took the cpu, it stops at once, for longer each time;
 *	a look that finds something has only paid if the peers answer sooner for
 *	  it: a stretch of looks in which waits do not follow each other half as
 *	  fast again as in the stretch of sleep before ends it, for longer each
 *	  time; and now and then it sleeps for a few waits, to compare anew.
 *
 * What is there at the first look proves nothing: a sleep would have ended at
 * once too.
 *
 * At rest it costs nothing: a thread without events does not wake up to look.
 * The clock and the count of switches are read only in here, when there was
 * nothing to do at once, or once in a stretch of sleep.
 */
#include "net/busy_poll.h"

#include <sched.h>
#include <sys/resource.h>

#include "base/util.h"

/* Tries in a row that make it the rule. */
#define LEARN 3

/* One wait in so many is a try: at first, and at most after failures. */
#define EVERY_FIRST 32
#define EVERY_MAX   4096

/* Not worth the calls below this. */
#define BUSY_POLL_MIN_US 6

/* Waits of sleep before a try that are timed: not all since the last one, there
 * may have been a rest between. */
#define SAMPLE 16

/* Waits between two looks at the pace, and stretches of them before it is
 * compared anew with that of sleep. */
#define STRETCH	  64
#define STRETCHES 128

void busy_poll_init(struct busy_poll *l, unsigned max_us, bool adapts)
{
	*l = (struct busy_poll){
		.max_us = max_us,
		.adapts = adapts,
		.us = adapts ? 0 : max_us,
		.every = EVERY_FIRST,
	};
}

/* Whether to look before this wait. */
bool busy_poll_is_due(struct busy_poll *l)
{
	if (!l->max_us)
		return false;
	l->waits++;
	if (l->us || l->streak)
		return true;
	if (l->waits + SAMPLE == l->every)
		l->since_ns = now_ns();
	return l->waits >= l->every;
}

static void poll_rarely(struct busy_poll *l, unsigned every)
{
	l->us = l->streak = l->waits = 0;
	l->every = every < EVERY_MAX ? every : EVERY_MAX;
}

static void begin_stretch(struct busy_poll *l, uint64_t now)
{
	l->waits = 0;
	l->since_ns = now;
}

static void learn_paid(struct busy_poll *l, uint64_t now)
{
	if (l->us) {
		l->us = 2 * l->us < l->max_us ? 2 * l->us : l->max_us;
		return;
	}
	if (++l->streak < LEARN)
		return;
	l->us = l->max_us;
	l->stretches = 0;
	begin_stretch(l, now);
}

static void learn_missed(struct busy_poll *l)
{
	if (!l->us)
		poll_rarely(l, 2 * l->every);
	else if (l->us / 2 < BUSY_POLL_MIN_US)
		poll_rarely(l, l->every);
	else
		l->us /= 2;
}

/* At the end of a stretch of looks: whether the peers are quicker for it. */
static void learn_pace(struct busy_poll *l, uint64_t now)
{
	uint64_t awake_ns = (now - l->since_ns) / l->waits;

	if (3 * awake_ns > 2 * l->asleep_ns) {
		counter_add(&l->unprofitable, 1);
		poll_rarely(l, 2 * l->every);
		return;
	}
	if (l->every > EVERY_FIRST)
		l->every /= 2;
	begin_stretch(l, now);
	if (++l->stretches == STRETCHES)
		poll_rarely(l, EVERY_FIRST);
}

/* How often others took this thread's cpu. */
static long switches(void)
{
	struct rusage use;

	return getrusage(RUSAGE_THREAD, &use) ? 0 : use.ru_nivcsw;
}

/* A look that began with nothing ended @now; it @found something or not, and
 * others took the cpu meanwhile or not. */
static void learn(struct busy_poll *l, bool found, bool preempted, uint64_t now)
{
	if (preempted) {
		counter_add(&l->preempted, 1);
		poll_rarely(l, 2 * l->every);
	} else if (found) {
		learn_paid(l, now);
	} else {
		learn_missed(l);
	}
	if (l->us && l->waits >= STRETCH)
		learn_pace(l, now);
}

/* The first look of a try: the waits before it were sleep. */
static void begin_try(struct busy_poll *l, uint64_t now)
{
	l->asleep_ns = (now - l->since_ns) / (l->waits + SAMPLE - l->every);
}

/**
 * busy_poll_wait() - look until there is something, or the time is up
 *
 * Only when busy_poll_is_due() has said so.
 *
 * Return: as epoll_wait(2) with no time to wait.
 */
int busy_poll_wait(struct busy_poll *l, int epfd, struct epoll_event *ev, int room)
{
	uint64_t most = 1000ull * (l->us ? l->us : l->max_us);
	uint64_t start, took = 0;
	long before;
	int n = epoll_wait(epfd, ev, room, 0);

	counter_add(&l->polls, 1);
	counter_add(&l->found, n > 0);
	if (n)
		return n;

	start = now_ns();
	before = l->adapts ? switches() : 0;
	if (!l->us && !l->streak)
		begin_try(l, start);
	while (!n && took < most) {
		sched_yield();
		n = epoll_wait(epfd, ev, room, 0);
		took = now_ns() - start;
	}
	counter_add(&l->found, n > 0);
	if (l->adapts)
		learn(l, n > 0, switches() != before, start + took);
	return n;
}
