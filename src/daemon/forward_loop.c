/* SPDX-License-Identifier: MIT */
/*
 * forward_loop.c - rules that forward to themselves
 *
 * A client of such a rule would be forwarded to sluice, which would forward it
 * to sluice, until no descriptors are left. A loop through another program, or
 * through address translation, is not visible here: see outgoing.h for that.
 */
#include "daemon/forward_loop.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/sock.h"

/* The search from one route; @seen is by place in @routes. */
struct search {
	const struct routes *routes;
	const struct listen_set *listens;
	bool *seen;
};

static void free_bools(bool **seen)
{
	free(*seen);
}

/* Whether what connects to @to is accepted by @l. */
static bool reaches(const struct addr *to, const struct listen_socket *l)
{
	if (addr_equal(&l->at, to))
		return true;
	return l->at.sa.sa_family == to->sa.sa_family &&
	       addr_port(&l->at) == addr_port(to) &&
	       (addr_is_any(&l->at) || addr_is_any(to)) && sock_is_local(to);
}

static unsigned place_of(const struct search *s, const struct route *route)
{
	unsigned i = 0;

	while (s->routes->at[i] != route)
		i++;
	return i;
}

static const struct addr *leads_to(struct search *s, const struct route *route,
				   const struct route *goal);

/* Whether a connection to @to gets to @goal, directly or by other routes. */
static bool gets_to(struct search *s, const struct addr *to,
		    const struct route *goal)
{
	list_each (node, &s->listens->entries) {
		const struct listen_entry *e =
			container_of(node, struct listen_entry, node);
		const struct route *next = e->socket.route;

		if (!reaches(to, &e->socket))
			continue;
		if (next == goal ||
		    (!s->seen[place_of(s, next)] && leads_to(s, next, goal)))
			return true;
	}
	return false;
}

/* Return: the address of @route's target that leads to @goal, or NULL. */
static const struct addr *leads_to(struct search *s, const struct route *route,
				   const struct route *goal)
{
	const struct target_set *found = route->found;

	s->seen[place_of(s, route)] = true;
	for (unsigned i = 0; found && i < found->n; i++)
		if (gets_to(s, &found->at[i].addr, goal))
			return &found->at[i].addr;
	return NULL;
}

/**
 * forward_loop_find() - look for a rule that forwards to itself
 *
 * Return: whether there is one; the log then names it.
 */
bool forward_loop_find(const struct routes *routes,
		       const struct listen_set *listens)
{
	cleanup(free_bools) bool *seen = calloc(routes->n, sizeof(*seen));
	struct search s = { routes, listens, seen };

	for (unsigned i = 0; seen && i < routes->n; i++) {
		const struct route *route = routes->at[i];
		const struct addr *to;
		char text[ADDR_STRLEN];

		memset(seen, 0, routes->n * sizeof(*seen));
		to = leads_to(&s, route, route);
		if (!to)
			continue;
		log_error("%starget %s: this rule forwards to itself; give "
			  "another target",
			  route->rule->where, addr_format(to, text));
		return true;
	}
	return false;
}
