/* SPDX-License-Identifier: MIT */
/*
 * outgoing.c - the connections to targets, by their local address
 *
 * Each accepted client is looked up, and each connection to a target is added,
 * by any worker. So there is a lock for each of many shards, which is held for
 * a few instructions.
 */
#include "daemon/outgoing.h"

#include <assert.h>
#include <string.h>

#include "base/util.h"

static struct outgoing_shard *shard_of(struct outgoing_table *t,
				       const struct addr *a)
{
	return &t->shard[addr_port(a) % OUTGOING_SHARDS];
}

/* The scope of a link-local address is not compared: both ends may name it
 * differently. */
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

/* Adds a socket that connects or is connected; one without an address is left out. */
void outgoing_add(struct outgoing_table *t, struct outgoing *o, int fd)
{
	struct outgoing_shard *s;
	socklen_t len = sizeof(o->local);

	if (getsockname(fd, &o->local.sa, &len) < 0)
		return;
	s = shard_of(t, &o->local);
	pthread_mutex_lock(&s->lock);
	list_append(&s->entries, &o->node);
	pthread_mutex_unlock(&s->lock);
}

/* Has @to, which is in no table, take the place of @from. */
void outgoing_move(struct outgoing_table *t, struct outgoing *to,
		   struct outgoing *from)
{
	struct outgoing_shard *s;

	if (list_empty(&from->node))
		return;
	to->local = from->local;
	s = shard_of(t, &to->local);
	pthread_mutex_lock(&s->lock);
	list_remove(&from->node);
	list_append(&s->entries, &to->node);
	pthread_mutex_unlock(&s->lock);
}

/* Harmless for one that was not added. */
void outgoing_remove(struct outgoing_table *t, struct outgoing *o)
{
	struct outgoing_shard *s;

	if (list_empty(&o->node))
		return;
	s = shard_of(t, &o->local);
	pthread_mutex_lock(&s->lock);
	list_remove(&o->node);
	pthread_mutex_unlock(&s->lock);
}

/* Whether a client of this address is one of our own connections. */
bool outgoing_has(struct outgoing_table *t, const struct addr *a)
{
	struct outgoing_shard *s = shard_of(t, a);
	bool found = false;

	pthread_mutex_lock(&s->lock);
	list_each (node, &s->entries)
		if (same(&container_of(node, struct outgoing, node)->local, a)) {
			found = true;
			break;
		}
	pthread_mutex_unlock(&s->lock);
	return found;
}
