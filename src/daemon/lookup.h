/* SPDX-License-Identifier: MIT */
/*
 * lookup.h - the names of rules, at the start and until each has an answer.
 */
#ifndef DAEMON_LOOKUP_H
#define DAEMON_LOOKUP_H

#include <stdbool.h>

#include "daemon/resolver.h"

struct server;

/**
 * struct lookup - what is still to be resolved
 * @resolver:	NULL if there is nothing
 * @patience:	bounds the wait at the start; @over: it has run out
 * @n_waiting:	names without any answer yet
 * @failed:	the program cannot start, and the reason has been logged
 */
struct lookup {
	struct resolver *resolver;
	struct timer patience;
	unsigned n_waiting;
	bool over, failed;
};

int lookup_begin(struct server *s);
void lookup_collect(struct server *s);
void lookup_end(struct server *s);

#endif /* DAEMON_LOOKUP_H */
