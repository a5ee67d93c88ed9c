/* SPDX-License-Identifier: MIT */
/*
 * lookup.c - resolves the hosts of routes, at the start and afterwards
 *
 * The start waits for a first answer to each name, but only for a few seconds.
 * A route whose target has no address by then listens all the same: its clients
 * are reset until there is one. An address to listen at must be known.
 */
#include "daemon/lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* How long the start waits for answers, to all names together. */
#define START_S 5

/* Names are numbered by route and end. */
static unsigned id_of(unsigned route, bool target)
{
	return 2 * route + target;
}

static void cannot_listen(struct lookup *l, const struct rule *rule,
			  const char *why)
{
	log_error("%s%s: %s", rule->where, rule->listen.host, why);
	l->failed = true;
}

/* Once for each route, until it has an answer. */
static void warn_unresolved(struct route *route, const char *why)
{
	char name[RULE_NAME_LEN];

	if (route->unresolved)
		return;
	route->unresolved = true;
	log_warn("%starget %s: %s; clients are reset until it resolves",
		 route->rule->where, rule_target_name(route->rule, name), why);
}

static void log_resolved(struct route *route, unsigned n)
{
	char name[RULE_NAME_LEN], first[TARGET_STRLEN];
	const char *where = route->rule->where;

	rule_target_name(route->rule, name);
	if (n > TARGETS_MAX)
		log_warn("%starget %s: %u addresses; the first %d are used",
			 where, name, n, TARGETS_MAX);
	if (route->unresolved)
		log_notice("%starget %s: resolved (%u addresses, the first "
			   "is %s); clients are forwarded",
			   where, name, route->found->n,
			   target_format(&route->found->at[0], first));
	route->unresolved = false;
}

/* Return: whether the addresses are used; if not, the name is resolved again. */
static bool take_targets(struct lookup *l, struct route *route,
			 const struct addr *addrs, unsigned n)
{
	int err = route_set_found(route, addrs, n);

	if (err) {
		warn_unresolved(route, strerror(-err));
		return false;
	}
	if (l->found && !l->found(l, route)) {
		route_clear_found(route);
		return false;
	}
	log_resolved(route, n);
	return true;
}

static bool take_listens(struct lookup *l, struct route *route,
			 const struct answer *a)
{
	int err = a->err ? a->err : route_set_listens(route, a->addrs, a->n);

	if (err)
		cannot_listen(l, route->rule, resolver_error(err));
	return !err;
}

static void take(struct lookup *l, const struct answer *a)
{
	struct route *route = l->routes->at[a->id / 2];
	bool target = a->id % 2, done = false;

	l->n_waiting -= a->first;
	if (target && a->err)
		warn_unresolved(route, resolver_error(a->err));
	else if (target)
		done = take_targets(l, route, a->addrs, a->n);
	else
		done = take_listens(l, route, a);
	if (done)
		resolver_settle(l->resolver, a->id);
}

/* Takes the answers that have arrived; called whenever the loop has turned. */
void lookup_collect(struct lookup *l)
{
	struct answer a;

	while (l->resolver && !l->failed && resolver_take(l->resolver, &a)) {
		take(l, &a);
		free(a.addrs);
	}
	if (l->resolver && resolver_is_idle(l->resolver))
		lookup_stop(l);
}

/* Reads a numeric address immediately, has a name resolved. Return: 0, or a
 * negative errno. */
static int look_up(struct lookup *l, unsigned i, bool target)
{
	struct route *route = l->routes->at[i];
	const struct endpoint *e =
		target ? &route->rule->target : &route->rule->listen;
	struct addr a;
	int err;

	if (!*e->host)
		return route_listen_any(route);
	if (!addr_parse_ip(&a, e->host, e->port))
		return target ? route_set_found(route, &a, 1)
			      : route_set_listens(route, &a, 1);
	if (!l->resolver)
		l->resolver = resolver_new(l->loop);
	if (!l->resolver)
		return -ENOMEM;
	err = resolver_ask(l->resolver, id_of(i, target), e->host, e->port);
	if (!err)
		l->n_waiting++;
	return err;
}

static int look_up_all(struct lookup *l)
{
	for (unsigned i = 0; i < l->routes->n; i++) {
		int err = look_up(l, i, false);

		if (!err)
			err = look_up(l, i, true);
		if (err) {
			log_error("%scannot look up addresses: %s",
				  l->routes->at[i]->rule->where, strerror(-err));
			return -1;
		}
	}
	return 0;
}

static void out_of_patience(struct timer *t)
{
	container_of(t, struct lookup, patience)->over = true;
}

/**
 * lookup_start() - begin to resolve the hosts of routes
 *
 * Numeric addresses are set when it returns. For names the owner turns @loop and
 * calls lookup_collect(), at first as long as lookup_is_waiting().
 *
 * Return: 0; or -1, the reason has been logged, and lookup_stop() must follow.
 */
int lookup_start(struct lookup *l, struct loop *loop, const struct routes *routes)
{
	int err = 0;

	*l = (struct lookup){ .loop = loop, .routes = routes };
	if (look_up_all(l))
		return -1;
	if (l->n_waiting)
		err = loop_timer(loop, &l->patience,
				 now_ns() + START_S * NS_PER_SEC,
				 out_of_patience);
	if (err)
		log_error("%s", strerror(-err));
	return err ? -1 : 0;
}

/* Whether the start waits for an answer. */
bool lookup_is_waiting(const struct lookup *l)
{
	return l->n_waiting && !l->over && !l->failed;
}

/**
 * lookup_wait_over() - go on without the answers that are missing
 *
 * Return: 0; or -1 if what to listen at is unknown, and that has been logged.
 */
int lookup_wait_over(struct lookup *l)
{
	char why[64];

	loop_untimer(l->loop, &l->patience);
	snprintf(why, sizeof(why), "no answer from the resolver within %d s",
		 START_S);
	for (unsigned i = 0; !l->failed && l->over && i < l->routes->n; i++) {
		struct route *route = l->routes->at[i];

		if (!route->listens)
			cannot_listen(l, route->rule, why);
		else if (!route->found)
			warn_unresolved(route, why);
	}
	return l->failed ? -1 : 0;
}

/* No name is resolved any more. */
void lookup_stop(struct lookup *l)
{
	resolver_close(l->resolver);
	l->resolver = NULL;
	if (l->loop)
		loop_untimer(l->loop, &l->patience);
}
