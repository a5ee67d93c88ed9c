/* SPDX-License-Identifier: MIT */
/*
 * lookup.h - resolves the hosts of routes, at the start and afterwards.
 */
#ifndef DAEMON_LOOKUP_H
#define DAEMON_LOOKUP_H

#include "daemon/resolver.h"
#include "daemon/routes.h"

/**
 * struct lookup - what is still to be resolved
 * @loop:	of the main thread
 * @routes:	the owner's
 * @resolver:	NULL if there is nothing to resolve
 * @patience:	limits the wait at the start; @over: that has expired
 * @n_waiting:	names without any answer yet
 * @failed:	the program cannot start, and the reason has been logged
 * @found:	NULL during the start. Later: called when a route has addresses.
 *		Return: whether they are used; otherwise the name is resolved again
 */
struct lookup {
	struct loop *loop;
	const struct routes *routes;
	struct resolver *resolver;
	struct timer patience;
	unsigned n_waiting;
	bool over, failed;
	bool (*found)(struct lookup *l, struct route *route);
};

int lookup_start(struct lookup *l, struct loop *loop,
		 const struct routes *routes);
void lookup_collect(struct lookup *l);
bool lookup_is_waiting(const struct lookup *l);
int lookup_wait_over(struct lookup *l);
void lookup_stop(struct lookup *l);

#endif /* DAEMON_LOOKUP_H */
