/* SPDX-License-Identifier: MIT */
/*
 * rule.c - a rule: listen here, forward there.
 */
#include "daemon/rule.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "net/sock.h"

/* "rules.conf:3: " or nothing */
static const char *colon_of(const struct rule *rule)
{
	return *rule->where ? ": " : "";
}

static int look_up(const struct rule *rule, const struct endpoint *e,
		   struct addr **ret, unsigned *n)
{
	int err = addr_resolve(ret, n, e->host, e->port);

	if (err < 0)
		log_error("%s%s%s: %s", rule->where, colon_of(rule), e->host,
			  strerror(-err));
	else if (err > 0)
		log_error("%s%s%s: %s", rule->where, colon_of(rule), e->host,
			  gai_strerror(-err));
	return err ? -1 : 0;
}

static int listen_anywhere(struct rule *rule)
{
	rule->any = true;
	rule->listens = calloc(2, sizeof(*rule->listens));
	if (!rule->listens) {
		log_error("%s", strerror(ENOMEM));
		return -1;
	}
	rule->n_listens = 2;
	(void)addr_any(&rule->listens[0], AF_INET, rule->listen.port);
	(void)addr_any(&rule->listens[1], AF_INET6, rule->listen.port);
	return 0;
}

/**
 * rule_resolve() - find the addresses of both ends
 *
 * Return: 0, or -1 and the reason has been logged.
 */
int rule_resolve(struct rule *rule)
{
	int err;

	if (*rule->listen.host)
		err = look_up(rule, &rule->listen, &rule->listens,
			      &rule->n_listens);
	else
		err = listen_anywhere(rule);
	if (err)
		return err;
	err = look_up(rule, &rule->target, &rule->targets, &rule->n_targets);
	for (unsigned i = 0; !err && i < rule->n_targets; i++)
		rule->local |= sock_is_local(&rule->targets[i]);
	return err;
}

void rule_fini(struct rule *rule)
{
	free(rule->listens);
	free(rule->targets);
	rule->listens = rule->targets = NULL;
}
