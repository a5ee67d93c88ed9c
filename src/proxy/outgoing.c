/* SPDX-License-Identifier: MIT */
/*
 * outgoing.c - the connections to targets, by their local address
 *
 * Each accepted client is looked up, and each connection to a target is added,
 * by any worker. So there is a lock for each of many shards, which is held for
 * a few instructions.
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

/**
 * outgoing_add() - enter a socket that connects or is connected
 * @remote:	what it connects to
 *
 * One that has no address any more is left out.
 */
void outgoing_add(struct outgoing_table *t, struct outgoing *o, int fd,
		  const struct addr *remote)
{
	struct outgoing_shard *s;
	socklen_t len = sizeof(o->local);

	if (getsockname(fd, &o->local.sa, &len) < 0)
		return;
	o->remote = *remote;
	o->entered = true;
	s = shard_of(t, &o->local);
	pthread_mutex_lock(&s->lock);
	list_append(&s->entries, &o->node);
	pthread_mutex_unlock(&s->lock);
}

/* Has @to, which is not entered, take the place of @from. */
void outgoing_move(struct outgoing_table *t, struct outgoing *to,
		   struct outgoing *from)
{
	struct outgoing_shard *s;

	if (!from->entered)
		return;
	to->local = from->local;
	to->remote = from->remote;
	to->entered = true;
	from->entered = false;
	s = shard_of(t, &to->local);
	pthread_mutex_lock(&s->lock);
	list_remove(&from->node);
	list_append(&s->entries, &to->node);
	pthread_mutex_unlock(&s->lock);
}

/* Harmless for one that is not entered. */
void outgoing_remove(struct outgoing_table *t, struct outgoing *o)
{
	struct outgoing_shard *s;

	if (!o->entered)
		return;
	o->entered = false;
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
