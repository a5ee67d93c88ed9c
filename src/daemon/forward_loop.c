/* SPDX-License-Identifier: MIT */
/*
 * circle.c - rules that lead back to themselves
 *
 * A client of such a rule would be forwarded to sluice, which would forward it
 * to sluice, until there are no descriptors left. What goes round outside of
 * this program, by another one or by address translation, cannot be seen here.
 */
#include "daemon/forward_loop.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/sock.h"

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

/*
 * Whether a client of @rule can get to @goal; @seen is by rule.
 *
 * Return: the target of @rule that leads there, or NULL.
 */
static const struct addr *leads_to(const struct server *s,
				   const struct rule *rule,
				   const struct rule *goal, bool *seen)
{
	seen[rule - s->conf->rules] = true;
	for (unsigned i = 0; rule->found && i < rule->found->n; i++)
		for (unsigned j = 0; j < s->n_open; j++) {
			const struct rule *next = s->open[j].rule;

			if (!reaches(&rule->found->at[i].addr, &s->open[j]))
				continue;
			if (next == goal || (!seen[next - s->conf->rules] &&
					     leads_to(s, next, goal, seen)))
				return &rule->found->at[i].addr;
		}
	return NULL;
}

/**
 * forward_loop_find() - look for rules that lead back to themselves
 *
 * Return: whether there is one; the log then says which.
 */
bool forward_loop_find(const struct server *s)
{
	const struct conf *conf = s->conf;
	cleanup(free_bools) bool *seen = calloc(conf->n_rules, sizeof(*seen));

	for (unsigned i = 0; seen && i < conf->n_rules; i++) {
		const struct rule *rule = &conf->rules[i];
		const struct addr *found;
		char to[ADDR_STRLEN];

		memset(seen, 0, conf->n_rules * sizeof(*seen));
		found = leads_to(s, rule, rule, seen);
		if (!found)
			continue;
		log_error("%s%starget %s leads back to this rule: its clients "
			  "would go round for ever",
			  rule->where, rule_colon(rule), addr_format(found, to));
		return true;
	}
	return false;
}
