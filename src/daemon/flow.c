/* SPDX-License-Identifier: MIT */
/*
 * flow.c - one forwarded connection, as policy
 *
 * A flow is born in the thread that accepts and lives in the one that adopts
 * it. Both of its sockets are watched from then on, so that nothing a client
 * does while the target is being connected to is lost: what it sends waits in
 * the kernel, its FIN is found by the relay, its RST ends the flow at once.
 */
#include "daemon/flow.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/probe.h"
#include "base/util.h"
#include "daemon/sweep.h"
#include "daemon/worker.h"
#include "net/sock.h"

const char *const flow_end_names[FLOW_END_COUNT] = {
#define X(name, words) #name,
	FLOW_ENDS(X)
#undef X
};

const char *const flow_end_words[FLOW_END_COUNT] = {
#define X(name, words) words,
	FLOW_ENDS(X)
#undef X
};

static void flow_target_ready(struct watch *w);

static int flow_fd(const struct flow *f, enum flow_side side)
{
	return f->relay.side[side].watch.fd;
}

static const char *who(const struct flow *f, char text[static ADDR_STRLEN])
{
	return addr_format(&f->client, text);
}

/* The target that was tried last, or is used. */
static const char *whom(const struct flow *f, char text[static ADDR_STRLEN])
{
	return addr_format(&f->rule->targets[f->next ? f->next - 1 : 0], text);
}

static void flow_to(struct flow *f, enum flow_state state)
{
	static const char *const names[] = { "new", "connecting", "relaying",
					     "closing" };
	char client[ADDR_STRLEN];

	assert(state > f->state);
	assert(state != FLOW_RELAYING || f->state == FLOW_CONNECTING);
	if (log_get_level() >= LOG_DEBUG)
		log_debug("%s: %s -> %s", who(f, client), names[f->state],
			  names[state]);
	f->state = state;
}

static const char *how(const struct flow *f, enum flow_side side)
{
	switch (relay_how(&f->relay, side)) {
	case RELAY_END_FIN:
		return "FIN";
	case RELAY_END_RESET:
		return "RST";
	case RELAY_END_ERROR:
		return strerror(f->relay.side[side].error);
	case RELAY_END_OPEN:
		break;
	}
	return "open";
}

/* What --mode=auto chose last in a direction, and why. */
static const char *choice(const struct lane *l)
{
	static const char *const words[CHOICES] = {
		[CHOICE_none] = "buffer (from the start)",
#define X(name, pipe, why) [CHOICE_##name] = pipe " (" #name ")",
		TALLY_CHOICES(X)
#undef X
	};

	return words[l->why];
}

/* The line that --log-level=info has for every connection. */
static void flow_log_end(const struct flow *f)
{
	const struct lane *up = &f->relay.lane[FLOW_CLIENT];
	const struct lane *down = &f->relay.lane[FLOW_TARGET];
	char client[ADDR_STRLEN], target[ADDR_STRLEN], chose[80] = "";
	double secs = (double)(now_ns() - f->born_ns) / 1e9;

	if (f->worker->conf->mode == RELAY_AUTO)
		snprintf(chose, sizeof(chose), ", up by %s, down by %s",
			 choice(up), choice(down));
	log_info("%s -> %s: %s: client %s, target %s, %llu bytes up, %llu "
		 "down, %.3f s, %llu by pipe, %llu by buffer%s",
		 who(f, client), whom(f, target), flow_end_names[f->end],
		 how(f, FLOW_CLIENT), how(f, FLOW_TARGET),
		 (unsigned long long)up->delivered,
		 (unsigned long long)down->delivered, secs,
		 (unsigned long long)(up->by_pipe + down->by_pipe),
		 (unsigned long long)(up->delivered - up->by_pipe +
				      down->delivered - down->by_pipe),
		 chose);
}

static void flow_log_trouble(const struct flow *f)
{
	static struct log_gate gate;
	char client[ADDR_STRLEN], target[ADDR_STRLEN];
	const char *why = flow_end_words[f->end];

	switch (f->end) {
	case FLOW_connect_failed:
		why = strerror(f->error);
		break;
	case FLOW_connect_timeout:
	case FLOW_connect_self:
	case FLOW_no_resources:
		break;
	default:
		return;
	}
	log_gated(&gate, LOG_WARN, "%s: cannot connect: %s; reset client %s",
		  whom(f, target), why, who(f, client));
}

/* Both sockets reset by themselves until here, see sock_set_abortive(). */
static void flow_close_side(const struct flow *f, enum flow_side side, bool reset)
{
	int fd = flow_fd(f, side);

	if (!reset)
		sock_set_abortive(fd, false);
	sock_close(fd, reset);
}

/* Counts, logs, closes and frees. Between batches. */
static void flow_bury(struct flow *f)
{
	struct worker *w = f->worker;
	bool reset = !relay_is_clean(&f->relay);

	probe(end, &f->relay, f->end, f->relay.lane[FLOW_CLIENT].delivered,
	      f->relay.lane[FLOW_TARGET].delivered);
	counter_add(&w->stats.ended[f->end], 1);
	counter_add(&w->stats.up, f->relay.lane[FLOW_CLIENT].delivered);
	counter_add(&w->stats.down, f->relay.lane[FLOW_TARGET].delivered);
	flow_log_trouble(f);
	if (log_get_level() >= LOG_INFO)
		flow_log_end(f);
	flow_close_side(f, FLOW_CLIENT, reset);
	flow_close_side(f, FLOW_TARGET, reset);
	loop_untimer(&w->loop, &f->deadline);
	worker_leave(w, f);
	assert(relay_is_unlinked(&f->relay));
	free(f);
}

static void flow_bury_job(struct job *j)
{
	flow_bury(container_of(j, struct flow, relay.job));
}

/* Ends a flow whose relay has not begun, after this batch. */
static void flow_end(struct flow *f, enum flow_end why)
{
	if (f->state == FLOW_CLOSING)
		return;
	flow_to(f, FLOW_CLOSING);
	f->end = why;
	f->relay.job.fn = flow_bury_job; /* in place of a next connect */
	loop_soon(&f->worker->loop, &f->relay.job);
}

static enum flow_end flow_why_stopped(const struct flow *f)
{
	return f->relay.stop == RELAY_IDLE	    ? FLOW_idle_timeout
	       : f->relay.stop == RELAY_HALF_CLOSED ? FLOW_half_close_timeout
	       : f->too_old			    ? FLOW_max_lifetime
						    : FLOW_stopped;
}

static void flow_relay_done(struct relay *r)
{
	static const enum flow_end reset[] = { FLOW_client_reset,
					       FLOW_target_reset };
	static const enum flow_end failed[] = { FLOW_client_failed,
						FLOW_target_failed };
	struct flow *f = container_of(r, struct flow, relay);

	flow_to(f, FLOW_CLOSING);
	if (relay_is_clean(r))
		f->end = FLOW_finished;
	else if (r->first_gone < 0)
		f->end = flow_why_stopped(f);
	else if (relay_how(r, (unsigned)r->first_gone) == RELAY_END_RESET)
		f->end = reset[r->first_gone];
	else
		f->end = failed[r->first_gone];
	flow_bury(f);
}

/* Begins one connect; gives up the reserve if there is no descriptor left. */
static int begin_connect(struct worker *w, const struct addr *to)
{
	const struct tuning *tuning = &w->conf->tuning;
	int fd = sock_connect(to, tuning);

	if (fd == -EMFILE &&
	    (pipes_close_free(&w->env.pipes) || worker_use_reserve(w)))
		fd = sock_connect(to, tuning);
	return fd;
}

/*
 * Begins to connect to the next address that does not refuse at once.
 *
 * Return: descriptor, or -1 when there is none left.
 */
static int flow_connect(struct flow *f)
{
	while (f->next < f->rule->n_targets) {
		int fd = begin_connect(f->worker, &f->rule->targets[f->next++]);

		if (fd >= 0)
			return fd;
		f->error = -fd;
	}
	return -1;
}

static enum flow_end connect_end(const struct flow *f)
{
	return sock_is_shortage(f->error) ? FLOW_no_resources
	       : f->error == ETIMEDOUT	  ? FLOW_connect_timeout
	       : f->error == ELOOP	  ? FLOW_connect_self
					  : FLOW_connect_failed;
}

static void flow_try_next(struct job *j);

/* The connect under way has failed; the next is begun after this batch. */
static void flow_connect_failed(struct flow *f, int err)
{
	if (f->state != FLOW_CONNECTING)
		return;
	f->error = err;
	f->relay.job.fn = flow_try_next;
	loop_soon(&f->worker->loop, &f->relay.job);
}

static void flow_deadline(struct timer *t)
{
	flow_connect_failed(container_of(t, struct flow, deadline), ETIMEDOUT);
}

/* Watches the socket of a connect that was begun, within a time limit. */
static int flow_await(struct flow *f, int fd)
{
	struct watch *target = &f->relay.side[FLOW_TARGET].watch;
	struct loop *loop = &f->worker->loop;
	uint64_t ms = f->worker->conf->connect_timeout_ms;
	int err;

	err = loop_timer(loop, &f->deadline, now_ns() + ms * NS_PER_MS,
			 flow_deadline);
	if (!err)
		err = loop_watch(loop, target, fd, LOOP_SOCKET,
				 flow_target_ready);
	return err;
}

static void flow_try_next(struct job *j)
{
	struct flow *f = container_of(j, struct flow, relay.job);
	struct watch *target = &f->relay.side[FLOW_TARGET].watch;
	int err;

	target->fd = close_fd(target->fd);
	target->fd = flow_connect(f);
	if (target->fd < 0) {
		flow_end(f, connect_end(f));
		return;
	}
	err = flow_await(f, target->fd);
	if (err) {
		f->error = -err;
		flow_end(f, FLOW_no_resources);
	}
}

static void flow_too_old(struct timer *t)
{
	struct flow *f = container_of(t, struct flow, deadline);

	f->too_old = true;
	relay_stop(&f->relay);
}

static void flow_limit_life(struct flow *f)
{
	uint64_t ms = f->worker->conf->max_lifetime_ms;

	if (ms)
		(void)loop_timer(&f->worker->loop, &f->deadline,
				 f->born_ns + ms * NS_PER_MS, flow_too_old);
}

/* The target is there: from now on it is the relay's. */
static void flow_relay(struct flow *f)
{
	loop_untimer(&f->worker->loop, &f->deadline);
	counter_add(&f->worker->stats.connected, 1);
	probe(connected, &f->relay, f->relay.side[FLOW_TARGET].watch.fd);
	flow_to(f, FLOW_RELAYING);
	flow_limit_life(f); /* first: there is room for one deadline now */
	relay_start(&f->relay, flow_relay_done);
}

static void flow_target_ready(struct watch *w)
{
	struct flow *f =
		container_of(w, struct flow, relay.side[FLOW_TARGET].watch);
	int err = 0;

	if (f->state != FLOW_CONNECTING || !(w->ready & LOOP_WRITABLE) ||
	    !list_empty(&f->relay.job.node))
		return;
	if (w->ready & (EPOLLERR | EPOLLHUP))
		err = -sock_connected(w->fd);
	/* These two say that it was connected, and has been reset since. */
	if (err == ECONNRESET || err == EPIPE)
		f->relay.side[FLOW_TARGET].error = err;
	else if (!err && f->rule->local &&
		 sock_is_self(w->fd, &f->rule->targets[f->next - 1]))
		err = ELOOP;
	if (err && !f->relay.side[FLOW_TARGET].error)
		flow_connect_failed(f, err);
	else
		flow_relay(f);
}

/*
 * The client has reset. If the target is there by now, though epoll may not
 * have told yet, what the client said before is still the target's to have.
 */
static void flow_client_reset(struct job *j)
{
	struct flow *f = container_of(j, struct flow, relay.job);

	if (sock_is_writable(flow_fd(f, FLOW_TARGET))) {
		flow_relay(f);
	} else {
		f->relay.side[FLOW_CLIENT].gone = true; /* for the log */
		flow_end(f, FLOW_client_left);
	}
}

/* While the target is being connected to. */
static void flow_client_ready(struct watch *w)
{
	struct flow *f =
		container_of(w, struct flow, relay.side[FLOW_CLIENT].watch);

	if (f->state != FLOW_CONNECTING || !(w->ready & (EPOLLERR | EPOLLHUP)))
		return;
	f->relay.job.fn = flow_client_reset; /* in place of a next connect */
	loop_soon(&f->worker->loop, &f->relay.job);
}

/**
 * flow_new() - begin to forward a client that was accepted
 * @w:		the worker that accepted it
 * @client:	socket; the flow's from now on
 * @from:	its address
 *
 * Return: a flow that waits for flow_adopt(); or NULL, and the client has been
 *	reset and counted.
 */
struct flow *flow_new(struct worker *w, const struct rule *rule, int client,
		      const struct addr *from)
{
	struct flow *f = calloc(1, sizeof(*f));
	int target;

	if (!f) {
		counter_add(&w->stats.ended[FLOW_no_resources], 1);
		sock_close(client, true);
		return NULL;
	}
	list_init(&f->node);
	f->worker = w;
	f->rule = rule;
	f->client = *from;
	f->born_ns = now_ns();
	target = flow_connect(f);
	relay_init(&f->relay, &w->env);
	f->relay.side[FLOW_CLIENT].watch.fd = client;
	f->relay.side[FLOW_TARGET].watch.fd = target;
	return f;
}

/**
 * flow_adopt() - go on with a flow
 * @w:		worker of the calling thread, who owns it from now on and has
 *		counted it in its load
 */
void flow_adopt(struct flow *f, struct worker *w)
{
	int client = flow_fd(f, FLOW_CLIENT), target = flow_fd(f, FLOW_TARGET);
	struct relay *r = &f->relay;
	int err;

	f->worker = w;
	r->env = &w->env;
	list_append(&w->flows, &f->node);
	sweep_begin(w);
	if (target < 0) {
		flow_end(f, connect_end(f));
		return;
	}
	flow_to(f, FLOW_CONNECTING);
	err = loop_watch(&w->loop, &r->side[FLOW_CLIENT].watch, client,
			 LOOP_SOCKET, flow_client_ready);
	if (!err)
		err = flow_await(f, target);
	if (err) {
		f->error = -err;
		flow_end(f, FLOW_no_resources);
	}
}

/* Cuts a flow off; it is freed after this batch. */
void flow_stop(struct flow *f)
{
	if (f->state == FLOW_RELAYING)
		relay_stop(&f->relay);
	else
		flow_end(f, FLOW_stopped);
}
