/* SPDX-License-Identifier: MIT */
/*
 * route.h - a rule at run time: the addresses that its hosts resolved to.
 */
#ifndef PROXY_ROUTE_H
#define PROXY_ROUTE_H

#include <stdatomic.h>

#include "conf/conf.h"
#include "proxy/target.h"

/**
 * struct route - counted; flows and listen sockets hold references
 * @conf:	holds @rule
 * @targets:	what flows connect to, NULL while the name is not resolved; set
 *		once: see route_targets()
 *
 * The rest is the main thread's:
 *
 * @listens:	addresses to listen at, NULL while the name is not resolved
 * @any:	it listens at every address: those without a protocol on this
 *		machine are left out
 * @found:	addresses to connect to, perhaps not yet in @targets
 * @unresolved:	the log says that the target's name is not resolved
 */
struct route {
	_Atomic unsigned refs;
	struct conf *conf;
	const struct rule *rule;
	struct target_set *_Atomic targets;
	struct addr *listens;
	unsigned n_listens;
	struct target_set *found;
	bool any, unresolved;
};

struct route *route_new(struct conf *conf, const struct rule *rule);
struct route *route_ref(struct route *route);
void route_unref(struct route *route);

int route_listen_any(struct route *route);
int route_set_listens(struct route *route, const struct addr *addrs, unsigned n);
int route_set_found(struct route *route, const struct addr *addrs, unsigned n);
void route_clear_found(struct route *route);
void route_publish(struct route *route);

/*
 * The target's addresses, NULL while its name is not resolved. A flow reads them
 * once, when it begins.
 */
static inline struct target_set *route_targets(const struct route *route)
{
	return atomic_load_explicit(&route->targets, memory_order_acquire);
}

#endif /* PROXY_ROUTE_H */
