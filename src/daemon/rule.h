/* SPDX-License-Identifier: MIT */
/*
 * rule.h - a rule: listen here, forward there.
 */
#ifndef DAEMON_RULE_H
#define DAEMON_RULE_H

#include "daemon/parse.h"
#include "net/addr.h"

/**
 * struct rule - one pair of LISTEN and TARGET, looked up; plain data
 * @where:	where it was written, for messages: "rules.conf:3", or ""
 * @listen, @target: as it was written, without brackets
 * @listens:	addresses to listen at; with @any, those that this machine
 *		has no protocol for are left out
 * @targets:	addresses to connect to, in the order to try
 * @local:	one of them is on this machine: a connect there may meet itself
 */
struct rule {
	char where[256];
	struct endpoint listen, target;
	struct addr *listens, *targets;
	unsigned n_listens, n_targets;
	bool any, local;
};

int rule_resolve(struct rule *rule);
void rule_fini(struct rule *rule);

#endif /* DAEMON_RULE_H */
