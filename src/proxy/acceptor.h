/* SPDX-License-Identifier: MIT */
/*
 * acceptor.h - a listening socket that one worker watches.
 */
#ifndef PROXY_ACCEPTOR_H
#define PROXY_ACCEPTOR_H

#include "proxy/listen_socket.h"
#include "proxy/worker.h"

/**
 * struct acceptor - accepts clients, begins to connect, and gives flows away
 *
 * One worker accepts all connections of a listening socket and begins their
 * connects, so that those of one client reach the target in the order in which
 * the client made them; the least loaded worker then runs the flow.
 *
 * @worker:	watches @socket, from acceptor_add() to acceptor_remove()
 * @pause:	set while accept is paused
 * @recheck:	when a link-local address is next compared with its interface
 * @turn:	the loop's turn in which clients were last accepted
 * @failures:	of accept since it last succeeded
 * @delays:	pauses and replacements because of them
 */
struct acceptor {
	struct request request;
	struct worker *worker;
	struct listen_socket *socket;
	struct watch watch;
	struct timer pause, recheck;
	uint64_t turn;
	unsigned failures, delays;
};

void acceptor_add(struct acceptor *a, struct worker *w,
		  struct listen_socket *socket, struct inbox *from,
		  void (*done)(struct request *r));
void acceptor_remove(struct acceptor *a, void (*done)(struct request *r));

#endif /* PROXY_ACCEPTOR_H */
