/* SPDX-License-Identifier: MIT */
/*
 * dead_peer.c - finds peers that are dead, of connections that last
 *
 * Every 30 seconds, so that short connections pay for neither of two things:
 *
 * Keepalive takes four calls a socket. Accepted sockets inherit it from the
 * listening socket; it is set on sockets to targets here.
 *
 * Keepalive finds no peer that died while its window was closed: the kernel
 * sends window probes instead, fifteen of them, up to two minutes apart. A live
 * peer that does not read acknowledges each probe. So a peer that has
 * acknowledged nothing for longer than the longest pause between two probes,
 * while a probe is unanswered, is dead. TCP_USER_TIMEOUT does not tell the two
 * apart (K31).
 */
#include "proxy/dead_peer.h"

#include "base/util.h"
#include "net/sock.h"

#define PERIOD_NS (30 * NS_PER_SEC)

void dead_peers_init(struct dead_peers *all, struct loop *loop)
{
	*all = (struct dead_peers){ .loop = loop };
	list_init(&all->relays);
}

void dead_peers_fini(struct dead_peers *all)
{
	loop_untimer(all->loop, &all->timer);
}

/* Fails side @i of a relay if its peer is dead. */
static void check_side(const struct dead_peer *p, unsigned i)
{
	unsigned limit_ms = p->options->dead_timeout_ms;

	if (limit_ms && sock_unanswered_ms(p->relay->side[i].watch.fd) > limit_ms)
		relay_fail(p->relay, i, ETIMEDOUT);
}

static void check(struct dead_peer *p)
{
	const struct keepalive *keepalive = &p->options->sockopts.keepalive;

	if (!p->checked && keepalive->idle_s)
		sockopts_set_keepalive(p->relay->side[1].watch.fd, keepalive);
	p->checked = true;
	check_side(p, 0);
	check_side(p, 1);
}

static void check_all(struct timer *t);

static void set_timer(struct dead_peers *all)
{
	if (!timer_is_set(&all->timer))
		(void)loop_timer(all->loop, &all->timer, now_ns() + PERIOD_NS,
				 check_all);
}

static void check_all(struct timer *t)
{
	struct dead_peers *all = container_of(t, struct dead_peers, timer);
	uint64_t now = now_ns();

	list_each (node, &all->relays) {
		struct dead_peer *p = container_of(node, struct dead_peer, node);

		if (now - p->since_ns >= PERIOD_NS)
			check(p);
	}
	if (!list_empty(&all->relays))
		set_timer(all);
}

/**
 * dead_peer_add() - check a relay from now on
 * @p:		all set but for @node; stays where it is until dead_peer_remove()
 */
void dead_peer_add(struct dead_peers *all, struct dead_peer *p)
{
	list_append(&all->relays, &p->node);
	set_timer(all);
}

/* Harmless for one that is not checked, but whose node is initialized. */
void dead_peer_remove(struct dead_peer *p)
{
	list_remove(&p->node);
}
