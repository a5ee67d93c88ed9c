/* SPDX-License-Identifier: MIT */
/*
 * server.c - the process: from a configuration to the last connection
 *
 * The main thread forwards nothing. It opens the listening sockets, gives them
 * to workers, and waits for signals. On SIGTERM the workers stop accepting; once
 * all have, the listening sockets are closed and the flows drain; when the drain
 * timeout expires, or on a second signal, the flows that are left are cut off.
 */
#include "daemon/server.h"

#include <signal.h>
#include <string.h>

#include "base/util.h"
#include "daemon/forward_loop.h"
#include "daemon/listen_set.h"
#include "daemon/lookup.h"
#include "daemon/report.h"
#include "daemon/signals.h"
#include "daemon/startup.h"
#include "proxy/workers.h"

/*
 *	STARTING - clients are accepted --------------> RUNNING
 *	STARTING, RUNNING - SIGTERM, or cannot start -> STOPPING
 *	STOPPING - no worker accepts any more --------> DRAINING
 *	DRAINING - no flow remains -------------------> ENDED
 */
enum server_state {
	SERVER_STARTING,
	SERVER_RUNNING,
	SERVER_STOPPING,
	SERVER_DRAINING,
	SERVER_ENDED,
};

/**
 * struct server
 * @conf:	the caller's reference
 * @loop:	of the main thread, @inbox: for acknowledgements of the workers
 * @drain:	set while flows may drain
 * @report:	set while stdout has not taken all reports
 * @reports:	how many SIGUSR1 have asked for
 * @cut_off:	flows that are left are not waited for
 */
struct server {
	struct conf *conf;
	enum server_state state;
	struct loop loop;
	struct inbox inbox;
	struct signals signals;
	struct routes routes;
	struct lookup lookup;
	struct listen_set listens;
	struct workers workers;
	struct timer drain, report;
	unsigned reports;
	bool cut_off;
	uint64_t started_ns;
};

static void report_write(struct server *s)
{
	struct report r = {
		.mode = s->conf->options.mode,
		.workers = s->workers.n,
		.seconds = (double)(now_ns() - s->started_ns) / 1e9,
	};

	workers_snapshot(&s->workers, &r.snapshot);
	report_print(&r, s->conf->stats);
}

static void report_is_due(struct timer *t);

/* Checks later whether stdout has taken the reports. */
static void report_watch(struct server *s)
{
	(void)loop_timer(&s->loop, &s->report,
			 now_ns() + REPORT_WAIT_MS * NS_PER_MS, report_is_due);
}

static void report_is_due(struct timer *t)
{
	if (report_check())
		report_watch(container_of(t, struct server, report));
}

/* Writes the next report that was asked for, once the snapshots are there. */
static void report_step(struct server *s)
{
	if (!s->reports || s->workers.pending[WORKER_SNAPSHOT])
		return;
	report_write(s);
	if (!timer_is_set(&s->report))
		report_watch(s);
	if (--s->reports)
		workers_order(&s->workers, WORKER_SNAPSHOT);
}

static void report_request(struct server *s)
{
	if (!s->reports++)
		workers_order(&s->workers, WORKER_SNAPSHOT);
}

/* Cuts off what is left, as soon as no worker accepts any more. */
static void server_cut_off(struct server *s)
{
	if (s->cut_off)
		return;
	s->cut_off = true;
	if (s->state == SERVER_DRAINING)
		workers_order(&s->workers, WORKER_CANCEL);
}

static void drain_expired(struct timer *t)
{
	server_cut_off(container_of(t, struct server, drain));
}

static void server_stop(struct server *s)
{
	if (s->state >= SERVER_STOPPING)
		return;
	s->state = SERVER_STOPPING;
	/* While one is being added, server_step() removes it afterwards. */
	if (!s->listens.pending)
		listen_set_stop(&s->listens);
}

static void server_terminate(struct server *s)
{
	uint64_t ms = s->conf->drain_timeout_ms;
	bool again = s->state >= SERVER_STOPPING;

	server_stop(s);
	if (again || !ms ||
	    loop_timer(&s->loop, &s->drain, now_ns() + ms * NS_PER_MS,
		       drain_expired))
		server_cut_off(s);
}

static void signal_received(struct signals *signals, int signo)
{
	struct server *s = container_of(signals, struct server, signals);

	if (signo == SIGUSR1)
		report_request(s);
	else
		server_terminate(s);
}

/* Goes on to the next state when all that it waits for has happened. */
static void server_step(struct server *s)
{
	if (s->state == SERVER_STOPPING && !s->listens.pending) {
		listen_set_stop(&s->listens);
		if (s->listens.pending)
			return;
		listen_set_close(&s->listens);
		s->state = SERVER_DRAINING;
		workers_order(&s->workers, WORKER_DRAIN);
		if (s->cut_off)
			workers_order(&s->workers, WORKER_CANCEL);
	}
	if (s->state == SERVER_DRAINING && !s->workers.pending[WORKER_DRAIN] &&
	    !s->workers.pending[WORKER_CANCEL] && !s->reports)
		s->state = SERVER_ENDED;
}

/* One turn of the main thread. */
static void server_turn(struct server *s)
{
	(void)loop_turn(&s->loop, -1);
	inbox_run(&s->inbox);
	lookup_collect(&s->lookup);
	report_step(s);
	server_step(s);
}

/* A name has been resolved after the start. Return: whether it is used. */
static bool target_found(struct lookup *l, struct route *route)
{
	struct server *s = container_of(l, struct server, lookup);

	if (forward_loop_find(&s->routes, &s->listens))
		return false;
	route_publish(route);
	return true;
}

/* Return: 0, or -1 and the reason has been logged; 0 too if it was stopped. */
static int server_resolve(struct server *s)
{
	if (lookup_start(&s->lookup, &s->loop, &s->routes))
		return -1;
	while (lookup_is_waiting(&s->lookup) && s->state == SERVER_STARTING)
		server_turn(s);
	return lookup_wait_over(&s->lookup);
}

/* Has workers accept. Return: as server_resolve(). */
static int server_accept(struct server *s)
{
	listen_set_start(&s->listens, &s->workers);
	while (s->listens.pending)
		server_turn(s);
	return s->listens.failed ? -1 : 0;
}

/* Return: as server_resolve(). */
static int server_start(struct server *s)
{
	rlim_t fds = startup_raise_descriptors();

	if (routes_init(&s->routes, s->conf)) {
		log_error("%s", strerror(ENOMEM));
		return -1;
	}
	if (signals_watch(&s->signals, &s->loop, signal_received) ||
	    server_resolve(s))
		return -1;
	if (s->state != SERVER_STARTING)
		return 0;
	if (workers_init(&s->workers, s->conf, &s->inbox) ||
	    listen_set_open(&s->listens, &s->routes) ||
	    forward_loop_find(&s->routes, &s->listens))
		return -1;
	for (unsigned i = 0; i < s->routes.n; i++)
		route_publish(s->routes.at[i]);
	s->lookup.found = target_found;
	if (server_accept(s))
		return -1;
	if (s->state == SERVER_STARTING) {
		s->state = SERVER_RUNNING;
		startup_log(s->conf, &s->listens, &s->workers, fds);
	}
	return 0;
}

/* Once the last flow has ended: the last line, and the statistics. */
static void server_log_end(struct server *s)
{
	struct snapshot sum;

	for (unsigned i = 0; i < s->workers.n; i++)
		snapshot_take(&s->workers.snapshots[i], &s->workers.at[i]);
	workers_snapshot(&s->workers, &sum);
	log_notice("stopped: %llu connections, %llu bytes delivered",
		   (unsigned long long)counter_read(&sum.flows.accepted),
		   (unsigned long long)(counter_read(&sum.relays.send.bytes) +
					counter_read(
						&sum.relays.splice_out.bytes)));
	log_flush(); /* before the statistics, if both go to one terminal */
	if (s->conf->stats != STATS_NONE)
		report_write(s);
	report_flush();
}

static void server_fini(struct server *s)
{
	lookup_stop(&s->lookup);
	workers_fini(&s->workers);
	listen_set_close(&s->listens);
	routes_fini(&s->routes);
	loop_untimer(&s->loop, &s->drain);
	loop_untimer(&s->loop, &s->report);
	signals_unwatch(&s->signals);
	inbox_fini(&s->inbox);
	loop_fini(&s->loop);
}

/**
 * server_run() - forward until a signal ends it
 *
 * Return: 0, or -1 if it could not start, and the reason has been logged.
 */
int server_run(struct conf *conf)
{
	struct server s = { .conf = conf,
			    .started_ns = now_ns(),
			    .signals.watch.fd = -1 };
	int err = loop_init(&s.loop);

	if (err && s.loop.refused)
		log_error("cannot create %s: %s", s.loop.refused, strerror(-err));
	else if (err)
		log_error("%s", strerror(-err));
	if (err)
		return -1;
	inbox_init(&s.inbox, &s.loop);
	listen_set_init(&s.listens);
	err = server_start(&s);
	if (err) {
		server_stop(&s);
		server_cut_off(&s);
	}
	server_step(&s);
	while (s.state != SERVER_ENDED)
		server_turn(&s);
	if (!err)
		server_log_end(&s);
	server_fini(&s);
	return err;
}
