/* SPDX-License-Identifier: MIT */
/*
 * listener.h - a rule made real: a listening socket that one worker watches.
 */
#ifndef DAEMON_LISTENER_H
#define DAEMON_LISTENER_H

#include "daemon/worker.h"

/**
 * struct listener - accepts, begins to connect, and hands the flow over
 *
 * One worker accepts all connections of a listening socket and begins their
 * connects, so that those of one client reach the target in the order in which
 * it made them; who then runs a flow is the least loaded worker.
 *
 * @turn:	the loop's turn in which clients were last taken
 * @pause:	set while the socket is left alone
 */
struct listener {
	struct list node;
	struct worker *worker;
	const struct rule *rule;
	struct watch watch;
	struct timer pause;
	uint64_t turn;
};

int listener_new(struct worker *w, const struct rule *rule, int fd);
void listener_free(struct listener *l);

#endif /* DAEMON_LISTENER_H */
