/* SPDX-License-Identifier: MIT */
/*
 * listen_set.h - the listening sockets of the process, by address.
 */
#ifndef DAEMON_LISTEN_SET_H
#define DAEMON_LISTEN_SET_H

#include "daemon/routes.h"
#include "proxy/acceptor.h"

/**
 * struct listen_entry - one listening socket and what accepts from it
 * @accepting:	the acceptor was added, and not removed since
 */
struct listen_entry {
	struct list node;
	struct listen_set *set;
	struct listen_socket socket;
	struct acceptor acceptor;
	bool accepting;
};

/**
 * struct listen_set - entries with distinct addresses
 * @entries:	@n of struct listen_entry
 * @next:	number of the worker that gets the next acceptor
 * @pending:	acceptors that are being added or removed
 * @failed:	one could not be added, and the reason has been logged
 */
struct listen_set {
	struct list entries;
	unsigned n, next, pending;
	bool failed;
};

void listen_set_init(struct listen_set *set);
int listen_set_open(struct listen_set *set, const struct routes *routes);
void listen_set_close(struct listen_set *set);
struct listen_entry *listen_set_find(const struct listen_set *set,
				     const struct addr *at);

void listen_set_start(struct listen_set *set, struct workers *workers);
void listen_set_stop(struct listen_set *set);

#endif /* DAEMON_LISTEN_SET_H */
