/* SPDX-License-Identifier: MIT */
/*
 * circle.c - rules that lead back to themselves
 *
 * A client of such a rule would be forwarded to sluice, which would forward it
 * to sluice, until there are no descriptors left. What goes round outside of
 * this program, by another one or by address translation, cannot be seen here.
 */
#include "daemon/circle.h"

#include "base/util.h"
#include "net/sock.h"

/* Whether what connects to @to is accepted by @l. */
static bool reaches(const struct addr *to, const struct listening *l)
{
	struct addr at;
	socklen_t len = sizeof(at);

	if (getsockname(l->fd, &at.sa, &len) || addr_port(&at) != addr_port(to))
		return false;
	if (addr_equal(&at, to))
		return true;
	return at.sa.sa_family == to->sa.sa_family &&
	       (addr_is_any(&at) || addr_is_any(to)) && sock_is_local(to);
}

/* Whether a client of @rule can get back to @goal, in at most @hops more. */
static bool leads_to(const struct server *s, const struct rule *rule,
		     const struct rule *goal, unsigned hops)
{
	for (unsigned i = 0; i < rule->n_targets; i++)
		for (unsigned j = 0; j < s->n_open; j++) {
			const struct rule *next = s->open[j].rule;

			if (!reaches(&rule->targets[i], &s->open[j]))
				continue;
			if (next == goal ||
			    (hops && leads_to(s, next, goal, hops - 1)))
				return true;
		}
	return false;
}

/**
 * circle_is_found() - look for rules that lead back to themselves
 *
 * Return: whether there is one; the log then says which.
 */
bool circle_is_found(const struct server *s)
{
	const struct conf *conf = s->conf;

	for (unsigned i = 0; i < conf->n_rules; i++) {
		const struct rule *rule = &conf->rules[i];
		char to[ADDR_STRLEN];

		if (!leads_to(s, rule, rule, conf->n_rules))
			continue;
		log_error("%s%starget %s leads back to this rule: its clients "
			  "would go round for ever",
			  rule->where, *rule->where ? ": " : "",
			  addr_format(&rule->targets[0], to));
		return true;
	}
	return false;
}
