/* SPDX-License-Identifier: MIT */
/*
 * rule.c - a rule: listen here, forward there.
 */
#include "daemon/rule.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

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

static int look_up(const struct rule *rule, const struct endpoint *e,
		   struct addr **ret, unsigned *n)
{
	int err = addr_resolve(ret, n, e->host, e->port);

	if (err)
		log_error("%s%s%s: %s", rule->where, rule_colon(rule), e->host,
			  err < 0 ? strerror(-err) : gai_strerror(-err));
	return err ? -1 : 0;
}

/**
 * rule_resolve() - find the addresses of both ends
 *
 * Return: 0, or -1 and the reason has been logged.
 */
int rule_resolve(struct rule *rule)
{
	struct addr *addrs = NULL;
	unsigned n;
	int err;

	if (!*rule->listen.host)
		err = rule_listen_anywhere(rule);
	else
		err = look_up(rule, &rule->listen, &rule->listens,
			      &rule->n_listens);
	if (!err)
		err = look_up(rule, &rule->target, &addrs, &n);
	if (!err)
		err = rule_set_targets(rule, addrs, n);
	free(addrs);
	if (!err)
		rule_publish(rule);
	return err ? -1 : 0;
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
