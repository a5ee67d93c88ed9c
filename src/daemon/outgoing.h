/* SPDX-License-Identifier: MIT */
/*
 * outgoing.h - the connections to targets, by their local address.
 */
#ifndef DAEMON_OUTGOING_H
#define DAEMON_OUTGOING_H

#include <pthread.h>
#include <stdbool.h>

#include "base/list.h"
#include "net/addr.h"

/* A power of two: entries are found by their port. */
#define OUTGOING_SHARDS 1024

/**
 * struct outgoing - one connection to a target, embedded in its owner
 * @node:	in a shard, or unlinked; list_init() it first
 * @local:	its address on this side
 */
struct outgoing {
	struct list node;
	struct addr local;
};

/**
 * struct outgoing_table - those of all workers
 *
 * A client whose address is in it is this program: its rule forwards to itself,
 * perhaps by address translation that no look at the rules can see.
 */
struct outgoing_table {
	struct outgoing_shard {
		pthread_mutex_t lock;
		struct list entries;
	} shard[OUTGOING_SHARDS];
};

void outgoing_init(struct outgoing_table *t);
void outgoing_fini(struct outgoing_table *t);
void outgoing_add(struct outgoing_table *t, struct outgoing *o, int fd);
void outgoing_move(struct outgoing_table *t, struct outgoing *to,
		   struct outgoing *from);
void outgoing_remove(struct outgoing_table *t, struct outgoing *o);
bool outgoing_has(struct outgoing_table *t, const struct addr *a);

#endif /* DAEMON_OUTGOING_H */
