/* SPDX-License-Identifier: MIT */
/*
 * listener.c - a rule made real: a listening socket that one worker watches
 *
 * It is watched level triggered: a few clients are taken a wake-up, so that
 * running connections have their turn in between, and the rest is reported
 * again. Where there are no descriptors or no memory, that would spin; then the
 * socket is left alone for a while, and clients wait in its queue (K29).
 */
#include "daemon/listener.h"

#include <stdlib.h>
#include <string.h>

#include "base/probe.h"
#include "base/util.h"
#include "daemon/server.h"
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

/* How long a listener is left alone. */
#define PAUSE_NS (100 * NS_PER_MS)

static void listener_ready(struct watch *w);

static void resume(struct timer *t)
{
	struct listener *l = container_of(t, struct listener, pause);
	struct loop *loop = &l->worker->loop;

	if (loop_watch(loop, &l->watch, l->watch.fd, EPOLLIN, listener_ready))
		(void)loop_timer(loop, t, now_ns() + PAUSE_NS, resume);
}

/* Leaves the socket alone for a while. */
static void pause_for(struct listener *l, int err)
{
	static struct log_gate gate;
	char at[ADDR_STRLEN];
	struct addr addr;
	socklen_t len = sizeof(addr);

	if (loop_timer(&l->worker->loop, &l->pause, now_ns() + PAUSE_NS, resume))
		return;
	loop_unwatch(&l->worker->loop, &l->watch);
	counter_add(&l->worker->stats.accept_pauses, 1);
	if (!getsockname(l->watch.fd, &addr.sa, &len))
		log_gated(&gate, LOG_WARN,
			  "%s: clients must wait: %s; %u connections are open",
			  addr_format(&addr, at), strerror(err),
			  server_load(l->worker->server));
}

static void accepted(struct listener *l, int fd, const struct addr *from)
{
	struct worker *w = l->worker, *runner;
	struct flow *f;

	counter_add(&w->stats.accepted, 1);
	f = flow_new(w, l->rule, fd, from);
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

/* Takes one client. Return: 0, or a negative errno when it should stop. */
static int take_one(struct listener *l)
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
		accepted(l, fd, &from);
		return 0;
	}
	if (fd == -EAGAIN)
		return fd;
	counter_add(&w->stats.accept_errors, 1);
	/* Anything else is about one client that is no longer there. */
	return sock_is_shortage(-fd) ? fd : 0;
}

static void listener_ready(struct watch *watch)
{
	struct listener *l = container_of(watch, struct listener, watch);
	bool queue = l->worker->loop.turns == l->turn + 1;
	int batch = queue ? LISTENER_BATCH : 1, err = 0;

	watch->ready = 0;
	for (int i = 0; i < batch && !err; i++)
		err = take_one(l);
	l->turn = l->worker->loop.turns;
	if (err && err != -EAGAIN)
		pause_for(l, -err);
}

/**
 * listener_new() - have a worker accept clients of a rule
 * @fd:		listening socket; the server's, who closes it after
 *		listener_free()
 *
 * Return: 0, or a negative errno.
 */
int listener_new(struct worker *w, const struct rule *rule, int fd)
{
	struct listener *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->worker = w;
	l->rule = rule;
	err = loop_watch(&w->loop, &l->watch, fd, EPOLLIN, listener_ready);
	if (err) {
		free(l);
		return err;
	}
	list_append(&w->listeners, &l->node);
	return 0;
}

/* Between batches, by its worker's thread. */
void listener_free(struct listener *l)
{
	if (timer_is_set(&l->pause))
		loop_untimer(&l->worker->loop, &l->pause);
	else
		loop_unwatch(&l->worker->loop, &l->watch);
	list_remove(&l->node);
	free(l);
}
