/* SPDX-License-Identifier: MIT */
/*
 * flow.c - one forwarded connection, as policy
 *
 * A flow is born in the thread that accepts and lives in the one that adopts
 * it. Both of its sockets are watched from then on, so that nothing a client
 * does while the target is being connected to is lost: what it sends waits in
 * the kernel, its FIN is found by the relay, its RST ends the flow at once.
 */
#include "proxy/flow.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/probe.h"
#include "base/util.h"
#include "net/sock.h"

static int flow_fd(const struct flow *f, enum flow_side side)
{
	return f->relay.side[side].watch.fd;
}

static const char *client_str(const struct flow *f, char text[static ADDR_STRLEN])
{
	return addr_format(&f->client, text);
}

/* The target that was tried last, or is used. */
static const char *target_str(const struct flow *f,
			      char text[static RULE_NAME_LEN])
{
	static_assert(RULE_NAME_LEN >= TARGET_STRLEN, "both are written there");

	return f->target ? target_format(f->target, text)
			 : rule_target_name(f->route->rule, text);
}

static void flow_to(struct flow *f, enum flow_state state)
{
	static const char *const names[] = { "new", "connecting", "relaying",
					     "closing" };
	static_assert(array_size(names) == FLOW_CLOSING + 1, "each state's");
	char client[ADDR_STRLEN];

	assert(state > f->state);
	assert(state != FLOW_RELAYING || f->state == FLOW_CONNECTING);
	if (log_get_level() >= LOG_DEBUG)
		log_debug("%s: %s -> %s", client_str(f, client),
			  names[f->state], names[state]);
	f->state = state;
}

static const char *end_str(const struct flow *f, enum flow_side side)
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
static const char *choice_str(const struct lane *l)
{
	static const char *const words[CHOICES] = {
		[CHOICE_none] = "buffer (from the start)",
#define X(name, pipe, why) [CHOICE_##name] = pipe " (" #name ")",
		RELAY_CHOICES(X)
#undef X
	};

	return words[l->why];
}

/* The line that --log-level=info has for every connection. */
static void flow_log_end(const struct flow *f)
{
	const struct lane *up = &f->relay.lane[FLOW_CLIENT];
	const struct lane *down = &f->relay.lane[FLOW_TARGET];
	char client[ADDR_STRLEN], target[RULE_NAME_LEN], chose[80] = "";
	double secs = (double)(now_ns() - f->born_ns) / 1e9;

	if (f->route->rule->options.mode == RELAY_AUTO)
		snprintf(chose, sizeof(chose), ", up by %s, down by %s",
			 choice_str(up), choice_str(down));
	log_info("%s -> %s: %s: client %s, target %s, %llu bytes up, %llu "
		 "down, %.3f s, %llu by pipe, %llu by buffer%s",
		 client_str(f, client), target_str(f, target),
		 flow_end_names[f->end], end_str(f, FLOW_CLIENT),
		 end_str(f, FLOW_TARGET), (unsigned long long)up->delivered,
		 (unsigned long long)down->delivered, secs,
		 (unsigned long long)(up->by_pipe + down->by_pipe),
		 (unsigned long long)(up->delivered - up->by_pipe +
				      down->delivered - down->by_pipe),
		 chose);
}

static void flow_log_trouble(const struct flow *f)
{
	static struct ratelimit limit;
	char client[ADDR_STRLEN], target[RULE_NAME_LEN];
	const char *why = flow_end_words[f->end];

	switch (f->end) {
	case FLOW_connect_failed:
		why = strerror(f->error);
		break;
	case FLOW_connect_timeout:
	case FLOW_connect_self:
	case FLOW_unresolved:
	case FLOW_no_resources:
	case FLOW_forward_loop:
		break;
	default:
		return;
	}
	log_ratelimited(&limit, LOG_WARN,
			"%s: cannot connect: %s; reset client %s",
			target_str(f, target), why, client_str(f, client));
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
static void flow_close(struct flow *f)
{
	struct worker *w = f->worker;
	bool reset = !relay_is_clean(&f->relay);

	assert(!f->connector);
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
	outgoing_remove(&w->all->outgoing, &f->outgoing);
	loop_untimer(&w->loop, &f->deadline);
	dead_peer_remove(&f->dead_peer);
	list_remove(&f->job.node);
	list_remove(&f->node);
	worker_flow_ended(w, f->born_ns);
	route_unref(f->route);
	assert(relay_is_unlinked(&f->relay));
	free(f);
}

/* Ends a flow whose relay has not begun, after this batch. */
static void flow_end(struct flow *f, enum flow_end why)
{
	if (f->state == FLOW_CLOSING)
		return;
	flow_to(f, FLOW_CLOSING);
	f->end = why;
	loop_soon(&f->worker->loop, &f->job);
}

/* The same while it may be connecting; not inside a batch, then. */
static void flow_give_up(struct flow *f, enum flow_end why)
{
	if (f->connector) {
		f->target = f->connector->last;
		f->error = f->connector->error;
		connector_cancel(f->connector);
		f->connector = NULL;
	}
	flow_end(f, why);
}

static enum flow_end flow_why_stopped(const struct flow *f)
{
	return f->relay.stop == RELAY_IDLE	    ? FLOW_idle_timeout
	       : f->relay.stop == RELAY_HALF_CLOSED ? FLOW_half_close_timeout
	       : f->expired			    ? FLOW_max_lifetime
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
	flow_close(f);
}

static void flow_expired(struct timer *t)
{
	struct flow *f = container_of(t, struct flow, deadline);

	f->expired = true;
	relay_stop(&f->relay);
}

static void flow_limit_life(struct flow *f)
{
	uint64_t ms = f->route->rule->options.max_lifetime_ms;

	if (ms)
		(void)loop_timer(&f->worker->loop, &f->deadline,
				 f->born_ns + ms * NS_PER_MS, flow_expired);
}

/* The target is there: from now on it is the relay's. */
static void flow_relay(struct flow *f)
{
	counter_add(&f->worker->stats.connected, 1);
	probe(connected, &f->relay, f->relay.side[FLOW_TARGET].watch.fd);
	flow_to(f, FLOW_RELAYING);
	flow_limit_life(f); /* first: there is room for one deadline now */
	dead_peer_add(&f->worker->dead_peers, &f->dead_peer);
	relay_start(&f->relay, flow_relay_done);
}

/*
 * Whether the client is a connection of this program, so that its rule forwards
 * to itself. Checked when it is accepted and again when its target has answered:
 * the connection may have been begun by another worker, and added since.
 *
 * That its address is one of ours is rare and no proof. The other end is: as it
 * is, or as it was before the kernel redirected it.
 */
static bool flow_is_loop(const struct flow *f)
{
	struct outgoing_table *t = &f->worker->all->outgoing;
	int fd = flow_fd(f, FLOW_CLIENT);
	struct addr at;
	bool found;

	if (!outgoing_has(t, &f->client, NULL))
		return false;
	found = (!sock_local_addr(fd, &at) && outgoing_has(t, &f->client, &at)) ||
		(!sock_original_addr(fd, &at) && outgoing_has(t, &f->client, &at));
	if (found)
		atomic_store_explicit(&t->loop_found, true, memory_order_relaxed);
	return found;
}

/* What became of the connect. */
static void flow_connect_done(struct connector *c, void *owner)
{
	struct flow *f = owner;

	f->connector = NULL;
	f->target = c->last;
	if (c->won) {
		f->relay.side[FLOW_TARGET].error = c->error;
		outgoing_move(&f->worker->all->outgoing, &f->outgoing,
			      &c->won->outgoing);
	}
	if (c->won && flow_is_loop(f)) {
		flow_end(f, FLOW_forward_loop);
	} else if (c->won) {
		flow_relay(f);
	} else {
		f->error = c->error;
		flow_end(f, c->why);
	}
}

/* While the target is being connected to. */
static void flow_target_ready(struct watch *w)
{
	struct flow *f =
		container_of(w, struct flow, relay.side[FLOW_TARGET].watch);

	if (f->connector)
		connector_ready(f->connector);
}

/* While the target is being connected to. */
static void flow_client_ready(struct watch *w)
{
	struct flow *f =
		container_of(w, struct flow, relay.side[FLOW_CLIENT].watch);

	if (f->state == FLOW_CONNECTING && w->ready & (EPOLLERR | EPOLLHUP))
		loop_soon(&f->worker->loop, &f->job);
}

/*
 * The client has reset. If the target is there by now, though epoll may not
 * have told yet, what the client said before is still the target's to have.
 */
static void flow_client_reset(struct flow *f)
{
	if (connector_recheck(f->connector))
		return;
	f->relay.side[FLOW_CLIENT].gone = true; /* for the log */
	flow_give_up(f, FLOW_client_left);
}

/* Why there is no connector. */
static enum flow_end flow_why_not(const struct flow *f)
{
	return f->loop	    ? FLOW_forward_loop
	       : f->targets ? FLOW_no_resources
			    : FLOW_unresolved;
}

/* Goes on in the thread of its worker. */
static void flow_begin(struct flow *f)
{
	struct worker *w = f->worker;
	struct relay *r = &f->relay;
	int err;

	if (!f->connector) {
		flow_end(f, flow_why_not(f));
		return;
	}
	if (!f->connector->n_pending) { /* each address refused immediately */
		flow_give_up(f, f->connector->why);
		return;
	}
	flow_to(f, FLOW_CONNECTING);
	err = loop_watch(&w->loop, &r->side[FLOW_CLIENT].watch,
			 flow_fd(f, FLOW_CLIENT), LOOP_SOCKET, flow_client_ready);
	if (err)
		flow_give_up(f, FLOW_no_resources);
	else
		connector_run(f->connector, w, flow_target_ready,
			      flow_connect_done, f);
}

/* Does what is next, between batches. A relay runs itself. */
static void flow_step(struct flow *f)
{
	switch (f->state) {
	case FLOW_NEW:
		flow_begin(f);
		break;
	case FLOW_CONNECTING:
		flow_client_reset(f);
		break;
	case FLOW_RELAYING:
		break;
	case FLOW_CLOSING:
		flow_close(f);
		break;
	}
}

static void flow_run(struct job *j)
{
	flow_step(container_of(j, struct flow, job));
}

/**
 * flow_new() - begin to forward a client that was accepted
 * @w:		the worker that accepted it
 * @client:	socket; the flow's from now on
 * @from:	its address
 *
 * Return: a flow for flow_give(); or NULL, and the client has been reset and
 *	counted.
 */
struct flow *flow_new(struct worker *w, struct route *route, int client,
		      const struct addr *from)
{
	struct flow *f = calloc(1, sizeof(*f));

	if (!f) {
		counter_add(&w->stats.ended[FLOW_no_resources], 1);
		sock_close(client, true);
		return NULL;
	}
	list_init(&f->node);
	f->worker = w;
	f->route = route_ref(route);
	f->client = *from;
	f->born_ns = now_ns();
	f->job.fn = flow_run;
	list_init(&f->job.node);
	f->dead_peer = (struct dead_peer){ .relay = &f->relay,
					   .options = &route->rule->options,
					   .since_ns = f->born_ns };
	list_init(&f->dead_peer.node);
	relay_init(&f->relay, &w->env);
	f->relay.side[FLOW_CLIENT].watch.fd = client;
	f->targets = route_targets(route);
	f->loop = flow_is_loop(f);
	if (f->targets && !f->loop)
		f->connector = connector_new(w, &route->rule->options, f->targets,
					     &f->relay.side[FLOW_TARGET].watch,
					     f->born_ns);
	return f;
}

static void flow_adopt(struct flow *f, struct worker *w)
{
	f->worker = w;
	f->relay.env = &w->env;
	list_append(&w->flows, &f->node);
	flow_step(f);
}

static void flow_adopt_message(struct message *m)
{
	struct flow *f = container_of(m, struct flow, adopt);

	flow_adopt(f, f->worker);
}

/**
 * flow_give() - give a flow to the worker that runs it
 * @w:		the one that accepted it, or another
 */
void flow_give(struct flow *f, struct worker *w)
{
	bool here = f->worker == w;

	atomic_fetch_add(&w->load, 1);
	f->worker = w;
	f->adopt.fn = flow_adopt_message;
	if (here)
		flow_adopt(f, w);
	else
		inbox_post(&w->inbox, &f->adopt);
}

static void flow_cancel(struct flow *f)
{
	if (f->state == FLOW_RELAYING)
		relay_stop(&f->relay);
	else
		flow_give_up(f, FLOW_stopped);
}

/* Cuts off all flows of a worker, by its thread; they end after the batch. */
void flows_cancel(struct worker *w)
{
	list_each (node, &w->flows)
		flow_cancel(container_of(node, struct flow, node));
}
