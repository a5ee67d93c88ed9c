/* SPDX-License-Identifier: MIT */
/*
 * listener.c - a rule made real: a listening socket that one worker watches
 *
 * It is watched level triggered: a few clients are taken a wake-up, so that
 * running connections have their turn in between, and the rest is reported
 * again. Where there are no descriptors or no memory, that would spin; then the
 * socket is left alone for a while, and clients wait in its queue (K29). So it
 * would where accept fails for every client, by a policy say, and where the
 * socket does not listen any more: see net/accept.c.
 */
#include "proxy/acceptor.h"

#include <stdlib.h>
#include <string.h>

#include "base/probe.h"
#include "base/util.h"
#include "daemon/listen_socket.h"
#include "net/accept.h"
#include "net/sock.h"

/* Clients a wake-up while there is a queue of them. Else it is one: when they
 * come one by one, to be told that there is no other takes a call for each. */
#define LISTENER_BATCH 4

/*
 * To hand a flow over wakes another thread, which costs as much as half a short
 * connection does. So while brief ones come and go, the worker that accepts has
 * so many more than others before it gives any away.
 */
#define BRIEF_MORE 32

/* How long accept is paused; where it fails again and again, twice as long each
 * time, up to the second. */
#define PAUSE_NS     (100 * NS_PER_MS)
#define PAUSE_MAX_NS (5 * NS_PER_SEC)

/* Failures in a row that are taken for those of single clients. */
#define FAILURES_MAX 64

/* How often a link-local address is compared with its interface. */
#define RECHECK_NS (2 * NS_PER_SEC)

static void acceptor_ready(struct watch *w);

static uint64_t next_delay(struct acceptor *l)
{
	uint64_t delay = PAUSE_NS << l->delays;

	if (delay >= PAUSE_MAX_NS)
		return PAUSE_MAX_NS;
	l->delays++;
	return delay;
}

static const char *where(const struct acceptor *l, char text[static ADDR_STRLEN])
{
	return addr_format(&l->socket->at, text);
}

static int watch(struct acceptor *l)
{
	return loop_watch(&l->worker->loop, &l->watch, l->socket->fd, EPOLLIN,
			  acceptor_ready);
}

static void resume(struct timer *t)
{
	struct acceptor *l = container_of(t, struct acceptor, pause);

	if (watch(l))
		(void)loop_timer(&l->worker->loop, t, now_ns() + PAUSE_NS,
				 resume);
}

/* Leaves the socket alone for a while. */
static void pause_for(struct acceptor *l, int err)
{
	static struct ratelimit limit;
	bool said = !sock_is_shortage(err) && l->delays;
	uint64_t delay = sock_is_shortage(err) ? PAUSE_NS : next_delay(l);
	char at[ADDR_STRLEN];

	if (loop_timer(&l->worker->loop, &l->pause, now_ns() + delay, resume))
		return;
	loop_unwatch(&l->worker->loop, &l->watch);
	counter_add(&l->worker->stats.accept_pauses, 1);
	if (!said)
		log_ratelimited(
			&limit, LOG_WARN,
			"accept paused for %u ms on %s: %s (%u connections)",
			(unsigned)(delay / NS_PER_MS), where(l, at),
			strerror(err), server_load(l->worker->server));
}

/* Replaces the socket. Return: 0, or a negative errno. */
static int reopen(struct acceptor *l)
{
	const struct server *s = l->worker->server;
	int err = listen_socket_reopen(s, l->socket);

	if (err == -EMFILE && worker_use_reserve(l->worker)) {
		err = listen_socket_reopen(s, l->socket);
		(void)worker_has_reserve(l->worker);
	}
	return err ? err : watch(l);
}

static void revive(struct timer *t)
{
	static struct ratelimit limit;
	struct acceptor *l = container_of(t, struct acceptor, pause);
	bool first = l->delays <= 1;
	char at[ADDR_STRLEN];
	int err = reopen(l);
	uint64_t delay;

	if (!err) {
		counter_add(&l->worker->stats.accept_reopened, 1);
		log_ratelimited(&limit, LOG_WARN,
				"listening socket replaced on %s", where(l, at));
		return;
	}
	delay = next_delay(l);
	(void)loop_timer(&l->worker->loop, t, now_ns() + delay, revive);
	if (first)
		log_ratelimited(
			&limit, LOG_WARN,
			"cannot listen at %s: %s; next attempt in %u ms",
			where(l, at), strerror(-err),
			(unsigned)(delay / NS_PER_MS));
}

/*
 * The socket does not listen any more. Another takes its place: immediately,
 * unless that has been done already and no client has been accepted since.
 */
static void socket_gone(struct acceptor *l, const char *why)
{
	static struct ratelimit limit;
	char at[ADDR_STRLEN];
	uint64_t delay = l->delays ? next_delay(l) : 0;

	if (loop_timer(&l->worker->loop, &l->pause, now_ns() + delay, revive))
		return;
	loop_unwatch(&l->worker->loop, &l->watch);
	if (!delay)
		l->delays = 1;
	log_ratelimited(
		&limit, LOG_WARN,
		"listening socket failed on %s: %s; opening another in %u ms",
		where(l, at), why, (unsigned)(delay / NS_PER_MS));
}

/* A socket at fe80::1%eth0 hears no client of an eth0 that was made anew. */
static void recheck(struct timer *t)
{
	struct acceptor *l = container_of(t, struct acceptor, recheck);

	if (!timer_is_set(&l->pause) && listen_socket_is_stale(l->socket))
		socket_gone(l, "its interface was replaced");
	(void)loop_timer(&l->worker->loop, t, now_ns() + RECHECK_NS, recheck);
}

static void accepted(struct acceptor *l, int fd, const struct addr *from)
{
	struct worker *w = l->worker, *runner;
	struct flow *f;

	counter_add(&w->stats.accepted, 1);
	f = flow_new(w, l->socket->rule, fd, from);
	if (!f)
		return;
	probe(accept, &f->relay, fd, &f->client);
	runner = server_least_loaded(
		w->server, w, worker_is_brief(w, f->born_ns) ? BRIEF_MORE : 0);
	atomic_fetch_add(&runner->load, 1);
	if (runner == w)
		flow_adopt(f, w);
	else
		worker_give(runner, f);
}

/* Whether accept has failed too often for these to be errors of one client. */
static bool is_stuck(struct acceptor *l)
{
	return ++l->failures > FAILURES_MAX;
}

/* Takes one client. Return: 0, or a negative errno when it should stop. */
static int take_one(struct acceptor *l)
{
	struct worker *w = l->worker;
	struct addr from;
	int fd;

	if (!worker_has_reserve(w) &&
	    !(pipes_close_free(&w->env.pipes) && worker_has_reserve(w)))
		return -EMFILE;
	fd = sock_accept(l->watch.fd, &from);
	if (fd == -EMFILE && pipes_close_free(&w->env.pipes))
		fd = sock_accept(l->watch.fd, &from);
	if (fd >= 0) {
		l->failures = l->delays = 0;
		if (l->socket->lacks & SOCK_LACKS_OOBINLINE)
			sock_keep_urgent(fd);
		accepted(l, fd, &from);
		return 0;
	}
	if (fd == -EAGAIN)
		return fd;
	counter_add(&w->stats.accept_errors, 1);
	return accept_verdict(-fd) == ACCEPT_CLIENT && !is_stuck(l) ? 0 : fd;
}

static void acceptor_ready(struct watch *w)
{
	struct acceptor *l = container_of(w, struct acceptor, watch);
	bool queue = l->worker->loop.turns == l->turn + 1;
	int batch = queue ? LISTENER_BATCH : 1, n = 0, err = 0;

	w->ready = 0;
	while (n < batch && !(err = take_one(l)))
		n++;
	l->turn = l->worker->loop.turns;
	/* Readable, and then no client: once is chance. */
	if (!err || (err == -EAGAIN && (n || !is_stuck(l))))
		return;
	if (accept_verdict(-err) == ACCEPT_GONE)
		socket_gone(l, strerror(-err));
	else
		pause_for(l, -err);
}

/**
 * acceptor_new() - have a worker accept clients of a rule
 * @socket:	the server's, which closes it after acceptor_free()
 *
 * Return: 0, or a negative errno.
 */
int acceptor_new(struct worker *w, struct listen_socket *socket)
{
	struct acceptor *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->worker = w;
	l->socket = socket;
	err = watch(l);
	if (!err && *socket->device)
		err = loop_timer(&w->loop, &l->recheck, now_ns() + RECHECK_NS,
				 recheck);
	if (err) {
		free(l);
		return err;
	}
	list_append(&w->acceptors, &l->node);
	return 0;
}

/* Between batches, by its worker's thread. */
void acceptor_free(struct acceptor *l)
{
	loop_untimer(&l->worker->loop, &l->recheck);
	if (timer_is_set(&l->pause))
		loop_untimer(&l->worker->loop, &l->pause);
	else
		loop_unwatch(&l->worker->loop, &l->watch);
	list_remove(&l->node);
	free(l);
}
