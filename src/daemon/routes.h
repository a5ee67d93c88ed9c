/* SPDX-License-Identifier: MIT */
/*
 * routes.h - a route for each rule of a configuration.
 */
#ifndef DAEMON_ROUTES_H
#define DAEMON_ROUTES_H

#include "proxy/route.h"

/**
 * struct routes - references to @n routes, in the order of the rules
 */
struct routes {
	struct route **at;
	unsigned n;
};

int routes_init(struct routes *rs, struct conf *conf);
void routes_fini(struct routes *rs);

#endif /* DAEMON_ROUTES_H */
