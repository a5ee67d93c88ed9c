/* SPDX-License-Identifier: MIT */
/*
 * rule.h - a rule: listen here, forward there.
 */
#ifndef CONF_RULE_H
#define CONF_RULE_H

#include <stdatomic.h>

#include "conf/parse.h"
#include "proxy/target.h"
#include "net/addr.h"

/* "[host]:65535" */
#define RULE_NAME_LEN (HOST_LEN_MAX + 8)

/**
 * struct rule - one pair of LISTEN and TARGET
 * @where:	where it was written, for messages: "rules.conf:3", or ""
 * @listen, @target: as it was written, without brackets
 * @listens:	addresses to listen at; with @any, those that this machine
 *		has no protocol for are left out
 * @found:	addresses to connect to, NULL while the name is not resolved; the
 *		main thread's
 * @targets:	the same for workers: see rule_targets()
 * @any:	it listens at every address
 * @told:	the log says that the target's name is not resolved
 */
struct rule {
	char where[256];
	struct endpoint listen, target;
	struct addr *listens;
	unsigned n_listens;
	struct target_set *found;
	struct target_set *_Atomic targets;
	bool any, told;
};

int rule_listen_anywhere(struct rule *rule);
int rule_set_listens(struct rule *rule, const struct addr *addrs, unsigned n);
int rule_set_targets(struct rule *rule, const struct addr *addrs, unsigned n);
void rule_publish(struct rule *rule);
void rule_fini(struct rule *rule);

const char *rule_colon(const struct rule *rule);
const char *rule_target_name(const struct rule *rule,
			     char out[static RULE_NAME_LEN]);

/*
 * The target's addresses, NULL while its name is not resolved. A flow takes them
 * once, when it begins, and uses no others.
 */
static inline struct target_set *rule_targets(const struct rule *rule)
{
	return atomic_load_explicit(&rule->targets, memory_order_acquire);
}

#endif /* CONF_RULE_H */
