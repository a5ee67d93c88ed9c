/* SPDX-License-Identifier: MIT */
/*
 * outgoing.c - the connections to targets, by their local address
 *
 * Any worker looks up the clients that it accepts, and adds connections to
 * targets. So there is a lock for each of many shards, held for a few
 * instructions.
 */
#include "proxy/outgoing.h"

#include <assert.h>
#include <string.h>

#include "base/util.h"

static struct outgoing_shard *shard_of(struct outgoing_table *t,
				       const struct addr *a)
{
	return &t->shard[addr_port(a) % OUTGOING_SHARDS];
}

/* The scope of a link-local address is not compared: it may differ between both
 * ends. */
static bool same(const struct addr *a, const struct addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family || addr_port(a) != addr_port(b))
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr,
		       sizeof(a->in6.sin6_addr));
}

void outgoing_init(struct outgoing_table *t)
{
	for (unsigned i = 0; i < OUTGOING_SHARDS; i++) {
		pthread_mutex_init(&t->shard[i].lock, NULL);
		list_init(&t->shard[i].entries);
	}
}

/* All entries have been removed. */
void outgoing_fini(struct outgoing_table *t)
{
	for (unsigned i = 0; i < OUTGOING_SHARDS; i++) {
		assert(list_empty(&t->shard[i].entries));
		pthread_mutex_destroy(&t->shard[i].lock);
	}
}

/**
 * outgoing_add() - add a socket that connects or is connected
 * @remote:	what it connects to
 *
 * A socket without an address is left out: it has been reset.
 */
void outgoing_add(struct outgoing_table *t, struct outgoing *o, int fd,
		  const struct addr *remote)
{
	struct outgoing_shard *s;
	socklen_t len = sizeof(o->local);

	if (getsockname(fd, &o->local.sa, &len) < 0)
		return;
	o->remote = *remote;
	o->added = true;
	s = shard_of(t, &o->local);
	pthread_mutex_lock(&s->lock);
	list_append(&s->entries, &o->node);
	pthread_mutex_unlock(&s->lock);
}

/* Replaces @from in the table by @to, which is not in it. */
void outgoing_move(struct outgoing_table *t, struct outgoing *to,
		   struct outgoing *from)
{
	struct outgoing_shard *s;

	if (!from->added)
		return;
	to->local = from->local;
	to->remote = from->remote;
	to->added = true;
	from->added = false;
	s = shard_of(t, &to->local);
	pthread_mutex_lock(&s->lock);
	list_remove(&from->node);
	list_append(&s->entries, &to->node);
	pthread_mutex_unlock(&s->lock);
}

/* Harmless for one that is not in the table. */
void outgoing_remove(struct outgoing_table *t, struct outgoing *o)
{
	struct outgoing_shard *s;

	if (!o->added)
		return;
	o->added = false;
	s = shard_of(t, &o->local);
	pthread_mutex_lock(&s->lock);
	list_remove(&o->node);
	pthread_mutex_unlock(&s->lock);
}

/* Whether there is a connection between these two; @remote NULL is any. */
bool outgoing_has(struct outgoing_table *t, const struct addr *local,
		  const struct addr *remote)
{
	struct outgoing_shard *s = shard_of(t, local);
	bool found = false;

	pthread_mutex_lock(&s->lock);
	list_each (node, &s->entries) {
		const struct outgoing *o =
			container_of(node, struct outgoing, node);

		found = same(&o->local, local) &&
			(!remote || same(&o->remote, remote));
		if (found)
			break;
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}
