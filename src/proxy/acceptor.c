/* SPDX-License-Identifier: MIT */
/*
 * acceptor.c - a listening socket that one worker watches
 *
 * The socket is watched level-triggered: a few clients are accepted in a turn,
 * so that running connections have their turn in between, and epoll reports the
 * rest again. Without descriptors or memory that would spin, so accept is paused
 * and clients wait in the queue (K29). It is paused too where accept fails for
 * every client, because of a security policy for example; and a socket that no
 * longer listens is replaced: see net/accept.c.
 */
#include "proxy/acceptor.h"

#include <stdlib.h>
#include <string.h>

#include "base/probe.h"
#include "base/util.h"
#include "net/accept.h"
#include "net/sock.h"
#include "proxy/flow.h"

/* Clients accepted in a turn while there is a queue. Otherwise one: when clients
 * come one by one, a second accept only returns EAGAIN. */
#define ACCEPT_BATCH 4

/*
 * To give a flow to another worker wakes a thread, which costs as much as half a
 * short connection. So while brief connections come and go, the worker that
 * accepts keeps flows until it has this many more than another.
 */
#define BRIEF_MORE 32

/* How long accept is paused; doubled with each failure in a row, up to the
 * second. */
#define PAUSE_NS     (100 * NS_PER_MS)
#define PAUSE_MAX_NS (5 * NS_PER_SEC)

/* Failures in a row that may each be of one client only. */
#define FAILURES_MAX 64

/* How often a link-local address is compared with its interface. */
#define RECHECK_NS (2 * NS_PER_SEC)

static void acceptor_ready(struct watch *w);

static uint64_t next_delay(struct acceptor *a)
{
	uint64_t delay = PAUSE_NS << a->delays;

	if (delay >= PAUSE_MAX_NS)
		return PAUSE_MAX_NS;
	a->delays++;
	return delay;
}

static const char *where(const struct acceptor *a, char text[static ADDR_STRLEN])
{
	return addr_format(&a->socket->at, text);
}

static int watch(struct acceptor *a)
{
	return loop_watch(&a->worker->loop, &a->watch, a->socket->fd, EPOLLIN,
			  acceptor_ready);
}

static void resume(struct timer *t)
{
	struct acceptor *a = container_of(t, struct acceptor, pause);

	if (watch(a))
		(void)loop_timer(&a->worker->loop, t, now_ns() + PAUSE_NS,
				 resume);
}

/* Pauses accept because of @err, a positive errno. */
static void pause_for(struct acceptor *a, int err)
{
	static struct ratelimit limit;
	bool logged = !sock_is_shortage(err) && a->delays;
	uint64_t delay = sock_is_shortage(err) ? PAUSE_NS : next_delay(a);
	char at[ADDR_STRLEN];

	if (loop_timer(&a->worker->loop, &a->pause, now_ns() + delay, resume))
		return;
	loop_unwatch(&a->worker->loop, &a->watch);
	counter_add(&a->worker->stats.accept_pauses, 1);
	if (!logged)
		log_ratelimited(
			&limit, LOG_WARN,
			"accept paused for %u ms on %s: %s (%u connections)",
			(unsigned)(delay / NS_PER_MS), where(a, at),
			strerror(err), workers_load(a->worker->all));
}

/* Replaces the socket. Return: 0, or a negative errno. */
static int reopen(struct acceptor *a)
{
	int err = listen_socket_reopen(a->socket);

	if (err == -EMFILE && worker_use_reserve(a->worker)) {
		err = listen_socket_reopen(a->socket);
		(void)worker_has_reserve(a->worker);
	}
	return err ? err : watch(a);
}

static void revive(struct timer *t)
{
	static struct ratelimit limit;
	struct acceptor *a = container_of(t, struct acceptor, pause);
	bool first = a->delays <= 1;
	char at[ADDR_STRLEN];
	int err = reopen(a);
	uint64_t delay;

	if (!err) {
		counter_add(&a->worker->stats.accept_reopened, 1);
		log_ratelimited(&limit, LOG_WARN,
				"listening socket replaced on %s", where(a, at));
		return;
	}
	delay = next_delay(a);
	(void)loop_timer(&a->worker->loop, t, now_ns() + delay, revive);
	if (first)
		log_ratelimited(
			&limit, LOG_WARN,
			"cannot listen at %s: %s; next attempt in %u ms",
			where(a, at), strerror(-err),
			(unsigned)(delay / NS_PER_MS));
}

/*
 * The socket does not listen any more. Another takes its place: immediately,
 * unless that has been done already and no client has been accepted since.
 */
static void socket_gone(struct acceptor *a, const char *why)
{
	static struct ratelimit limit;
	char at[ADDR_STRLEN];
	uint64_t delay = a->delays ? next_delay(a) : 0;

	if (loop_timer(&a->worker->loop, &a->pause, now_ns() + delay, revive))
		return;
	loop_unwatch(&a->worker->loop, &a->watch);
	if (!delay)
		a->delays = 1;
	log_ratelimited(
		&limit, LOG_WARN,
		"listening socket failed on %s: %s; opening another in %u ms",
		where(a, at), why, (unsigned)(delay / NS_PER_MS));
}

/* A socket at fe80::1%eth0 accepts no client of an eth0 that was created again. */
static void recheck(struct timer *t)
{
	struct acceptor *a = container_of(t, struct acceptor, recheck);

	if (!timer_is_set(&a->pause) && listen_socket_is_stale(a->socket))
		socket_gone(a, "its interface was replaced");
	(void)loop_timer(&a->worker->loop, t, now_ns() + RECHECK_NS, recheck);
}

static void accepted(struct acceptor *a, int fd, const struct addr *from)
{
	struct worker *w = a->worker;
	struct flow *f;
	unsigned more;

	counter_add(&w->stats.accepted, 1);
	f = flow_new(w, a->socket->route, fd, from);
	if (!f)
		return;
	probe(accept, &f->relay, fd, &f->client);
	more = worker_is_brief(w, f->born_ns) ? BRIEF_MORE : 0;
	flow_give(f, worker_least_loaded(w, more));
}

/* Whether accept has failed too often for these to be errors of one client. */
static bool is_stuck(struct acceptor *a)
{
	return ++a->failures > FAILURES_MAX;
}

/* Takes one client. Return: 0, or a negative errno when it should stop. */
static int take_one(struct acceptor *a)
{
	struct worker *w = a->worker;
	struct addr from;
	int fd;

	if (!worker_has_reserve(w) &&
	    !(pipes_close_free(&w->env.pipes) && worker_has_reserve(w)))
		return -EMFILE;
	fd = sock_accept(a->watch.fd, &from);
	if (fd == -EMFILE && pipes_close_free(&w->env.pipes))
		fd = sock_accept(a->watch.fd, &from);
	if (fd >= 0) {
		a->failures = a->delays = 0;
		if (a->socket->lacks & SOCK_LACKS_OOBINLINE)
			sock_keep_urgent(fd);
		accepted(a, fd, &from);
		return 0;
	}
	if (fd == -EAGAIN)
		return fd;
	counter_add(&w->stats.accept_errors, 1);
	return accept_verdict(-fd) == ACCEPT_CLIENT && !is_stuck(a) ? 0 : fd;
}

static void acceptor_ready(struct watch *w)
{
	struct acceptor *a = container_of(w, struct acceptor, watch);
	bool queue = a->worker->loop.turns == a->turn + 1;
	int batch = queue ? ACCEPT_BATCH : 1, n = 0, err = 0;

	w->ready = 0;
	while (n < batch && !(err = take_one(a)))
		n++;
	a->turn = a->worker->loop.turns;
	/* Readable, and then no client: once is chance. */
	if (!err || (err == -EAGAIN && (n || !is_stuck(a))))
		return;
	if (accept_verdict(-err) == ACCEPT_GONE)
		socket_gone(a, strerror(-err));
	else
		pause_for(a, -err);
}

static int start(struct request *r)
{
	struct acceptor *a = container_of(r, struct acceptor, request);
	struct loop *loop = &a->worker->loop;
	int err = watch(a);

	if (!err && *a->socket->device) {
		err = loop_timer(loop, &a->recheck, now_ns() + RECHECK_NS,
				 recheck);
		if (err)
			loop_unwatch(loop, &a->watch);
	}
	return err;
}

static int stop(struct request *r)
{
	struct acceptor *a = container_of(r, struct acceptor, request);
	struct loop *loop = &a->worker->loop;

	loop_untimer(loop, &a->recheck);
	if (timer_is_set(&a->pause))
		loop_untimer(loop, &a->pause);
	else
		loop_unwatch(loop, &a->watch);
	return 0;
}

/**
 * acceptor_add() - have a worker accept clients
 * @socket:	still the caller's, to close after acceptor_remove()
 * @from:	inbox of the calling thread
 * @done:	called by that thread, with request.result 0 or a negative errno
 */
void acceptor_add(struct acceptor *a, struct worker *w,
		  struct listen_socket *socket, struct inbox *from,
		  void (*done)(struct request *r))
{
	*a = (struct acceptor){ .worker = w,
				.socket = socket,
				.request = { .run = start, .done = done } };
	request_send(&a->request, &w->inbox, from);
}

/**
 * acceptor_remove() - accept no more clients
 * @done:	called by the calling thread; then no flow that was accepted is on
 *		its way to its worker without being in that worker's inbox
 *
 * Only after acceptor_add() was done, without an error.
 */
void acceptor_remove(struct acceptor *a, void (*done)(struct request *r))
{
	a->request.run = stop;
	a->request.done = done;
	request_send(&a->request, &a->worker->inbox, a->request.from);
}
