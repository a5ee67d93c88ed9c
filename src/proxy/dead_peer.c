/* SPDX-License-Identifier: MIT */
/*
 * sweep.c - what is done for connections that last, from time to time
 *
 * Two things that short connections should not pay for.
 *
 * Keepalive takes four calls a socket. Those of clients come with the listening
 * socket; those to targets are made here, once a connection has lasted for a
 * sweep.
 *
 * A peer that is dead while its window is shut is found by no keepalive: the
 * kernel probes the window instead, fifteen times, up to two minutes apart. A
 * peer that lives and merely does not read acknowledges each probe. So one that
 * has not acknowledged anything for longer than the longest pause between two
 * probes, while a probe is unanswered, is dead; TCP_USER_TIMEOUT would not
 * tell the two apart (K31).
 */
#include "proxy/dead_peer.h"

#include "base/util.h"
#include "net/sock.h"

#define SWEEP_NS (30 * NS_PER_SEC)

/* Looks whether the peer that lane @i of @f waits for is still there. */
static void check_sink(struct flow *f, unsigned i)
{
	unsigned limit_ms = f->worker->conf->dead_timeout_ms;

	if (!limit_ms)
		return;
	if (sock_unanswered_ms(f->relay.side[!i].watch.fd) > limit_ms)
		relay_fail(&f->relay, !i, ETIMEDOUT);
}

static void sweep(struct timer *t)
{
	struct worker *w = container_of(t, struct worker, dead_peer);
	uint64_t now = now_ns();

	list_each (node, &w->flows) {
		struct flow *f = container_of(node, struct flow, node);

		if (f->state != FLOW_RELAYING || now - f->born_ns < SWEEP_NS)
			continue;
		if (!f->kept && w->conf->sockopts.keepalive.idle_s)
			sockopts_set_keepalive(f->relay.side[FLOW_TARGET].watch.fd,
					       &w->conf->sockopts.keepalive);
		f->kept = true;
		check_sink(f, FLOW_CLIENT);
		check_sink(f, FLOW_TARGET);
	}
	if (!list_empty(&w->flows))
		dead_peer_start(w);
}

/* Sees to it that there will be a sweep; called when there is a flow. */
void dead_peer_start(struct worker *w)
{
	if (!timer_is_set(&w->dead_peer))
		(void)loop_timer(&w->loop, &w->dead_peer, now_ns() + SWEEP_NS,
				 sweep);
}
