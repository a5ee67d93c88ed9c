/* SPDX-License-Identifier: MIT */
/*
 * route.c - a rule at run time: the addresses that its hosts resolved to.
 */
#include "proxy/route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Return: a route with one reference, or NULL for want of memory. */
struct route *route_new(struct conf *conf, const struct rule *rule)
{
	struct route *route = calloc(1, sizeof(*route));

	if (!route)
		return NULL;
	atomic_init(&route->refs, 1);
	route->conf = conf_ref(conf);
	route->rule = rule;
	return route;
}

/* Any thread may, as long as another reference lives meanwhile. */
struct route *route_ref(struct route *route)
{
	atomic_fetch_add_explicit(&route->refs, 1, memory_order_relaxed);
	return route;
}

/* The last reference frees it. */
void route_unref(struct route *route)
{
	if (atomic_fetch_sub_explicit(&route->refs, 1, memory_order_acq_rel) != 1)
		return;
	free(route->listens);
	target_set_free(route->found);
	conf_unref(route->conf);
	free(route);
}

/* Without a host it listens at every address. Return: 0, or -ENOMEM. */
int route_listen_any(struct route *route)
{
	uint16_t port = route->rule->listen.port;

	route->listens = calloc(2, sizeof(*route->listens));
	if (!route->listens)
		return -ENOMEM;
	route->any = true;
	route->n_listens = 2;
	(void)addr_any(&route->listens[0], AF_INET, port);
	(void)addr_any(&route->listens[1], AF_INET6, port);
	return 0;
}

/* Sets what its host to listen at resolved to. Return: 0, or -ENOMEM. */
int route_set_listens(struct route *route, const struct addr *addrs, unsigned n)
{
	route->listens = calloc(n, sizeof(*addrs));
	if (!route->listens)
		return -ENOMEM;
	memcpy(route->listens, addrs, n * sizeof(*addrs));
	route->n_listens = n;
	return 0;
}

/* Sets what its target resolved to. Return: 0, or -ENOMEM. */
int route_set_found(struct route *route, const struct addr *addrs, unsigned n)
{
	route->found = target_set_new(addrs, n, route->rule->target.host);
	return route->found ? 0 : -ENOMEM;
}

/* Forgets it again; only before route_publish(). */
void route_clear_found(struct route *route)
{
	target_set_free(route->found);
	route->found = NULL;
}

/* Gives flows what was found, if anything was; once. */
void route_publish(struct route *route)
{
	atomic_store_explicit(&route->targets, route->found,
			      memory_order_release);
}
