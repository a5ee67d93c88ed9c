/* SPDX-License-Identifier: MIT */
/*
 * loop.h - one thread's event loop.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/list.h"
#include "net/recheck.h"
#include "net/busy_poll.h"
#include "net/timer.h"

/* What a connected socket is watched for, once and for ever. */
#define LOOP_SOCKET (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET)

/* What is remembered of an edge until the owner takes it away. */
#define LOOP_READABLE EPOLLIN
#define LOOP_WRITABLE EPOLLOUT
#define LOOP_ENDING   (EPOLLRDHUP | EPOLLHUP | EPOLLERR)
/* The last report said readable; the owner has read nothing since, or takes it
 * away. A bit that epoll does not use. */
#define WATCH_UNREAD (1u << 24)
/* It was taken for empty, was not, and no edge told of it: it is not to be doubted
 * again before there is one. Another such bit. */
#define WATCH_RECHECKED (1u << 25)

/**
 * struct watch - a descriptor that the loop looks after
 * @fd:		descriptor, borrowed from the owner, -1 if none
 * @ready:	what the kernel has reported and the owner has not used up;
 *		RDHUP, HUP, ERR and PRI always bring LOOP_READABLE with them,
 *		HUP and ERR also LOOP_WRITABLE
 * @recheck:	it may be readable though @ready does not say so; see doubt.c
 * @unproven:	times in a row that it was taken for empty, and was not known to
 *		be; @proven_at: in which tick it last was
 * @fn:		called when @ready has been added to
 */
struct watch {
	int fd;
	uint32_t ready;
	struct list recheck;
	uint16_t unproven, proven_at;
	void (*fn)(struct watch *w);
};

/**
 * struct job - something to do once, when the current batch is over
 *
 * list_init() its node before first use; list_remove() takes it back.
 */
struct job {
	struct list node;
	void (*fn)(struct job *j);
};

/**
 * struct loop - epoll, deadlines, and what was put off
 * @armed_ns:	when the timerfd goes off, UINT64_MAX if it does not
 * @soon:	jobs for the end of this batch
 * @again:	jobs that have had their budget: one a turn, behind @soon
 * @recheck:	sockets that nobody has read until EAGAIN
 * @busy_poll:how it waits; see busy_poll_init()
 * @flush:	run before and behind the jobs of a turn, if @flush_due: it sees
 *		to what they have asked for
 * @bulk:	set by whoever moved much in this turn: what comes next is not
 *		worth looking for, since more of it comes at once for waiting
 * @refused:	what loop_init() could not make, NULL if it failed otherwise
 */
struct loop {
	int epfd;
	struct watch wake, clock;
	uint64_t armed_ns;
	struct timers timers;
	struct list soon, again;
	struct recheck recheck;
	struct busy_poll busy_poll;
	struct job *flush;
	bool flush_due;
	bool bulk;
	uint64_t turns;
	const char *refused;
};

int loop_init(struct loop *loop);
void loop_fini(struct loop *loop);

int loop_watch(struct loop *loop, struct watch *w, int fd, uint32_t events,
	       void (*fn)(struct watch *));
void loop_unwatch(struct loop *loop, struct watch *w);
int loop_move(struct loop *loop, struct watch *to, struct watch *from,
	      uint32_t events, void (*fn)(struct watch *));
void watch_report(struct watch *w, uint32_t ready);

/* Notes what a descriptor is ready for, as epoll tells it or as its owner knows
 * without. */
static inline void watch_set(struct watch *w, uint32_t bits)
{
	w->ready |= bits;
}

/* It is no longer: its owner has used it up. */
static inline void watch_clear(struct watch *w, uint32_t bits)
{
	w->ready &= ~bits;
}

void loop_soon(struct loop *loop, struct job *j);
void loop_again(struct loop *loop, struct job *j);

int loop_timer(struct loop *loop, struct timer *t, uint64_t due_ns,
	       void (*fn)(struct timer *));
void loop_untimer(struct loop *loop, struct timer *t);

int loop_turn(struct loop *loop, int timeout_ms);
bool loop_pending(const struct loop *loop);
void loop_wake(struct loop *loop);

#endif /* NET_LOOP_H */
