/* SPDX-License-Identifier: MIT */
/*
 * outgoing.h - the connections to targets, by their local address.
 */
#ifndef PROXY_OUTGOING_H
#define PROXY_OUTGOING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/list.h"
#include "net/addr.h"

/* A power of two: entries are found by their port. */
#define OUTGOING_SHARDS 1024

/**
 * struct outgoing - one connection to a target, embedded in its owner
 * @node:	in a shard, while @added; guarded by the shard's lock
 * @added:	for the owner alone
 * @local, @remote: both, since Linux gives the same local address to connections
 *		with different remote addresses
 *
 * All zero is one that is not in the table.
 */
struct outgoing {
	struct list node;
	bool added;
	struct addr local, remote;
};

/**
 * struct outgoing_table - those of all workers
 * @loop_found:	a client was such a connection: some rule forwards to itself
 *
 * A client whose connection is in it is this process: its rule forwards to itself,
 * perhaps by a route or an address translation that the rules do not show.
 */
struct outgoing_table {
	_Atomic bool loop_found;
	struct outgoing_shard {
		pthread_mutex_t lock;
		struct list entries;
	} shard[OUTGOING_SHARDS];
};

void outgoing_init(struct outgoing_table *t);
void outgoing_fini(struct outgoing_table *t);
void outgoing_add(struct outgoing_table *t, struct outgoing *o, int fd,
		  const struct addr *remote);
void outgoing_move(struct outgoing_table *t, struct outgoing *to,
		   struct outgoing *from);
void outgoing_remove(struct outgoing_table *t, struct outgoing *o);
bool outgoing_has(struct outgoing_table *t, const struct addr *local,
		  const struct addr *remote);

#endif /* PROXY_OUTGOING_H */
