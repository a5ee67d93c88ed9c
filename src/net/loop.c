/* SPDX-License-Identifier: MIT */
/*
 * loop.c - one thread's event loop
 *
 * DOC: Theory of operation
 *
 * A connected socket is registered once, edge triggered, for everything, and
 * never modified: epoll_ctl(2) is paid per connection and not per wake-up. What
 * the kernel reports is added to watch.ready. Only the owner takes bits away,
 * when a system call has said EAGAIN: the kernel announces that a descriptor
 * has become ready, never that it has stopped being so.
 *
 * A batch is what one epoll_wait(2) returned. Inside a batch no object that has
 * a watch may be freed, since a later entry of the batch may point to it. Work
 * that moves bytes or frees something is handed to loop_soon() and runs between
 * batches, once, however many events asked for it.
 *
 * Work that has used up its share of the thread comes back by loop_again(). A
 * turn runs all that has just become ready, and then a single one of those: so
 * a short message waits for one bulk transfer's share, not for everybody's.
 *
 * Deadlines are a timerfd in the same epoll set, so that whoever polls the
 * loop's descriptor is woken by them too. It is set when the first deadline
 * moves forward and never when one is taken back: most deadlines never come,
 * and a wake-up for nothing costs less than a system call for each of them.
 */
#include "net/loop.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "base/util.h"

#define LOOP_BATCH 64

/* So often behind the jobs of a turn; what comes then waits for the next. */
#define LOOP_FLUSHES 4

static void drain_counter(struct watch *w)
{
	uint64_t n;

	(void)!read(w->fd, &n, sizeof(n));
}

/* Sets the timerfd for the first deadline, if that is earlier than it is set
 * for. Return: 0, or a negative errno. */
static int arm(struct loop *loop)
{
	uint64_t due_ns = timers_next(&loop->timers);
	struct itimerspec when = {
		.it_value.tv_sec = (time_t)(due_ns / NS_PER_SEC),
		.it_value.tv_nsec = (long)(due_ns % NS_PER_SEC),
	};

	if (due_ns >= loop->armed_ns)
		return 0;
	if (!due_ns)
		when.it_value.tv_nsec = 1; /* all zero would disarm */
	if (timerfd_settime(loop->clock.fd, TFD_TIMER_ABSTIME, &when, NULL) < 0)
		return -errno;
	loop->armed_ns = due_ns;
	return 0;
}

static void clock_ready(struct watch *w)
{
	struct loop *loop = container_of(w, struct loop, clock);

	drain_counter(w);
	loop->armed_ns = UINT64_MAX;
	timers_run(&loop->timers, now_ns());
}

/* Watches what a loop needs itself. Return: 0, or a negative errno. */
static int watch_own(struct loop *loop, struct watch *w, int fd,
		     const char *what, void (*fn)(struct watch *))
{
	int err = fd < 0 ? -errno : 0;

	w->fd = fd;
	loop->refused = err ? what : NULL;
	return err ? err : loop_watch(loop, w, fd, EPOLLIN, fn);
}

/**
 * loop_init() - make a loop
 *
 * Return: 0, or a negative errno and nothing is left behind; @loop->refused
 *	names what could not be made.
 */
int loop_init(struct loop *loop)
{
	int err;

	*loop = (struct loop){
		.epfd = epoll_create1(EPOLL_CLOEXEC),
		.wake.fd = -1,
		.clock.fd = -1,
		.armed_ns = UINT64_MAX,
	};
	list_init(&loop->soon);
	list_init(&loop->again);
	recheck_init(&loop->recheck);
	if (loop->epfd < 0) {
		loop->refused = "epoll";
		return -errno;
	}
	err = watch_own(loop, &loop->wake, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
			"eventfd", drain_counter);
	if (!err)
		err = watch_own(loop, &loop->clock,
				timerfd_create(CLOCK_MONOTONIC,
					       TFD_NONBLOCK | TFD_CLOEXEC),
				"timerfd", clock_ready);
	if (err)
		loop_fini(loop);
	return err;
}

/* Everything that was watched, set or put off must have been taken back. */
void loop_fini(struct loop *loop)
{
	loop_untimer(loop, &loop->recheck.tick);
	loop->clock.fd = close_fd(loop->clock.fd);
	loop->wake.fd = close_fd(loop->wake.fd);
	loop->epfd = close_fd(loop->epfd);
	timers_fini(&loop->timers);
}

/* Ends the wait of loop_turn(); the only call that other threads may make. */
void loop_wake(struct loop *loop)
{
	uint64_t one = 1;

	(void)!write(loop->wake.fd, &one, sizeof(one));
}

/**
 * loop_watch() - start looking after a descriptor
 * @w:		watch to fill in; must stay put until the descriptor is closed
 *		or loop_unwatch() has been called
 * @fd:		descriptor, still the caller's to close
 * @events:	LOOP_SOCKET, or what epoll_ctl(2) takes
 * @fn:		callback
 *
 * What is ready already is reported too, by the next turn.
 *
 * Return: 0, or a negative errno and nothing is registered.
 */
int loop_watch(struct loop *loop, struct watch *w, int fd, uint32_t events,
	       void (*fn)(struct watch *))
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	*w = (struct watch){ .fd = fd, .fn = fn };
	list_init(&w->recheck);
	if (epoll_ctl(loop->epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	return 0;
}

/**
 * loop_unwatch() - stop looking after a descriptor
 *
 * Not needed before the last descriptor of a socket is closed, which does it
 * too. Events of the current batch may still call @w->fn.
 */
void loop_unwatch(struct loop *loop, struct watch *w)
{
	(void)epoll_ctl(loop->epfd, EPOLL_CTL_DEL, w->fd, NULL);
}

/**
 * loop_move() - have another watch look after a descriptor
 * @to:		watch that looks after none
 * @from:	has none after this; what it has seen is @to's
 *
 * Between batches.
 *
 * Return: 0, or a negative errno and nothing has changed.
 */
int loop_move(struct loop *loop, struct watch *to, struct watch *from,
	      uint32_t events, void (*fn)(struct watch *))
{
	struct epoll_event ev = { .events = events, .data.ptr = to };

	if (epoll_ctl(loop->epfd, EPOLL_CTL_MOD, from->fd, &ev) < 0)
		return -errno;
	*to = (struct watch){ .fd = from->fd, .ready = from->ready, .fn = fn };
	list_init(&to->recheck);
	from->fd = -1;
	return 0;
}

/* Has @j run once this batch is over; asking twice is asking once. */
void loop_soon(struct loop *loop, struct job *j)
{
	if (list_empty(&j->node))
		list_append(&loop->soon, &j->node);
}

/* Has @j run after what has become ready meanwhile, in its turn. */
void loop_again(struct loop *loop, struct job *j)
{
	if (list_empty(&j->node))
		list_append(&loop->again, &j->node);
}

/**
 * loop_timer() - have @fn called at @due_ns, inside a batch
 *
 * Return: 0, or a negative errno and it is not set.
 */
int loop_timer(struct loop *loop, struct timer *t, uint64_t due_ns,
	       void (*fn)(struct timer *))
{
	int err = timer_set(&loop->timers, t, due_ns, fn);

	if (!err)
		err = arm(loop);
	if (err)
		timer_clear(&loop->timers, t);
	return err;
}

void loop_untimer(struct loop *loop, struct timer *t)
{
	timer_clear(&loop->timers, t);
}

/* Whether there is work that no descriptor announces. */
bool loop_pending(const struct loop *loop)
{
	return loop->flush_due || !list_empty(&loop->soon) ||
	       !list_empty(&loop->again);
}

static void run_first(struct list *jobs)
{
	struct job *j = container_of(jobs->next, struct job, node);

	list_remove(&j->node);
	j->fn(j);
}

static void run_soon(struct loop *loop)
{
	struct list now;

	list_take(&now, &loop->soon);
	while (!list_empty(&now))
		run_first(&now);
}

/* Return: whether it was due. */
static bool flush(struct loop *loop)
{
	if (!loop->flush_due)
		return false;
	loop->flush_due = false;
	loop->flush->fn(loop->flush);
	return true;
}

static void run_jobs(struct loop *loop)
{
	flush(loop);
	run_soon(loop);
	if (!list_empty(&loop->again))
		run_first(&loop->again);
	/* What that came to, and what is asked for then. */
	for (int i = 0; i < LOOP_FLUSHES && flush(loop); i++)
		run_soon(loop);
}

/* Tells the owner of @w what it is @ready for, as epoll(7) spells it. */
void watch_report(struct watch *w, uint32_t ready)
{
	watch_clear(w, WATCH_UNREAD | WATCH_RECHECKED);
	if (ready & EPOLLIN)
		ready |= WATCH_UNREAD;
	if (ready & (LOOP_ENDING | EPOLLPRI))
		ready |= LOOP_READABLE;
	if (ready & (EPOLLHUP | EPOLLERR))
		ready |= LOOP_WRITABLE;
	if (ready & LOOP_READABLE)
		recheck_cancel(w);
	watch_set(w, ready);
	w->fn(w);
}

/* Return: as epoll_wait(2). */
static int loop_wait(struct loop *loop, struct epoll_event *ev, int room,
		     int timeout_ms)
{
	bool bulk = loop->bulk;
	int n;

	loop->bulk = false;
	if (loop_pending(loop))
		timeout_ms = 0;
	if (recheck_turn(&loop->recheck, timeout_ms != 0))
		timeout_ms = 0;
	if (timeout_ms && !bulk && busy_poll_is_due(&loop->busy_poll)) {
		n = busy_poll_wait(&loop->busy_poll, loop->epfd, ev, room);
		if (n)
			return n;
	}
	return epoll_wait(loop->epfd, ev, room, timeout_ms);
}

/**
 * loop_turn() - wait for one batch of events, then run what it put off
 * @timeout_ms:	as for epoll_wait(2); not waited at all if jobs are pending
 *
 * Return: 0, or a negative errno of epoll_wait(2); the jobs have run anyway,
 *	so that an end in progress always gets there.
 */
int loop_turn(struct loop *loop, int timeout_ms)
{
	struct epoll_event ev[LOOP_BATCH];
	int err = 0, i, n;

	n = loop_wait(loop, ev, array_size(ev), timeout_ms);
	if (n < 0 && errno != EINTR)
		err = -errno;

	loop->turns++;
	for (i = 0; i < n; i++)
		watch_report(ev[i].data.ptr, ev[i].events);
	run_jobs(loop);
	if (arm(loop)) /* after clock_ready(); if it fails, try again at once */
		loop_wake(loop);
	return err;
}
