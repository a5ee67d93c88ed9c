/* SPDX-License-Identifier: MIT */
/*
 * rule.c - a rule: listen here, forward there.
 */
#include "conf/rule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What stands between rule.where and a message. */
const char *rule_colon(const struct rule *rule)
{
	return *rule->where ? ": " : "";
}

/* The target as it was written: "app.example:80", "[fe80::1%eth0]:80". */
const char *rule_target_name(const struct rule *rule,
			     char out[static RULE_NAME_LEN])
{
	const struct endpoint *e = &rule->target;

	snprintf(out, RULE_NAME_LEN, strchr(e->host, ':') ? "[%s]:%u" : "%s:%u",
		 e->host, e->port);
	return out;
}

/* Without a host it listens at every address. Return: 0, or -ENOMEM. */
int rule_listen_anywhere(struct rule *rule)
{
	rule->listens = calloc(2, sizeof(*rule->listens));
	if (!rule->listens)
		return -ENOMEM;
	rule->any = true;
	rule->n_listens = 2;
	(void)addr_any(&rule->listens[0], AF_INET, rule->listen.port);
	(void)addr_any(&rule->listens[1], AF_INET6, rule->listen.port);
	return 0;
}

/* What its host to listen at was looked up to. Return: 0, or -ENOMEM. */
int rule_set_listens(struct rule *rule, const struct addr *addrs, unsigned n)
{
	rule->listens = calloc(n, sizeof(*addrs));
	if (!rule->listens)
		return -ENOMEM;
	memcpy(rule->listens, addrs, n * sizeof(*addrs));
	rule->n_listens = n;
	return 0;
}

/* What its target was looked up to. Return: 0, or -ENOMEM. */
int rule_set_targets(struct rule *rule, const struct addr *addrs, unsigned n)
{
	rule->found = target_set_new(addrs, n, rule->target.host);
	return rule->found ? 0 : -ENOMEM;
}

/* Shows workers what was found; by the main thread, once. */
void rule_publish(struct rule *rule)
{
	atomic_store_explicit(&rule->targets, rule->found, memory_order_release);
}

/* No worker uses it any more. */
void rule_fini(struct rule *rule)
{
	free(rule->listens);
	target_set_free(rule->found);
	rule->listens = NULL;
	rule->found = NULL;
	atomic_init(&rule->targets, NULL);
}
