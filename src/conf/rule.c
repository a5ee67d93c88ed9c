/* SPDX-License-Identifier: MIT */
/*
 * rule.c - a rule as it was written.
 */
#include "conf/rule.h"

#include <stdio.h>
#include <string.h>

/* The target as it was written: "app.example:80", "[fe80::1%eth0]:80". */
const char *rule_target_name(const struct rule *rule,
			     char out[static RULE_NAME_LEN])
{
	const struct endpoint *e = &rule->target;

	snprintf(out, RULE_NAME_LEN, strchr(e->host, ':') ? "[%s]:%u" : "%s:%u",
		 e->host, e->port);
	return out;
}
