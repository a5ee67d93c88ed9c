/* SPDX-License-Identifier: MIT */
/*
 * listener.h - a rule made real: a listening socket that one worker watches.
 */
#ifndef PROXY_ACCEPTOR_H
#define PROXY_ACCEPTOR_H

#include "proxy/worker.h"

struct listen_socket;

/**
 * struct acceptor - accepts, begins to connect, and hands the flow over
 *
 * One worker accepts all connections of a listening socket and begins their
 * connects, so that those of one client reach the target in the order in which
 * it made them; who then runs a flow is the least loaded worker.
 *
 * @socket:	what it watches; the server's
 * @pause:	set while the socket is left alone
 * @recheck:	when a link-local address is compared with its interface
 * @turn:	the loop's turn in which clients were last taken
 * @failures:	of accept since it last succeeded
 * @delays:	pauses and replacements because of them
 */
struct acceptor {
	struct list node;
	struct worker *worker;
	struct listen_socket *socket;
	struct watch watch;
	struct timer pause, recheck;
	uint64_t turn;
	unsigned failures, delays;
};

int acceptor_new(struct worker *w, struct listen_socket *socket);
void acceptor_free(struct acceptor *l);

#endif /* PROXY_ACCEPTOR_H */
