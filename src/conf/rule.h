/* SPDX-License-Identifier: MIT */
/*
 * rule.h - a rule as it was written: listen here, forward there, with options.
 */
#ifndef CONF_RULE_H
#define CONF_RULE_H

#include "conf/parse.h"
#include "net/sockopts.h"
#include "relay/relay.h"

/* "[host]:65535" */
#define RULE_NAME_LEN (HOST_LEN_MAX + 8)

/**
 * struct rule_options - options that each rule may have its own of
 * @*_ms:	times in milliseconds; 0 is no limit, where there may be none
 * @discard_max: bytes
 */
struct rule_options {
	enum relay_mode mode;
	unsigned connect_timeout_ms, max_lifetime_ms;
	unsigned idle_timeout_ms, half_close_timeout_ms, dead_timeout_ms;
	unsigned linger_ms;
	size_t discard_max;
	struct sockopts sockopts;
};

/**
 * struct rule - one pair of LISTEN and TARGET; never changes once it is read
 * @where:	where it was written, to begin a message with: "rules.conf:3: ",
 *		or ""
 * @listen, @target: hosts without brackets; an empty host to listen at is any
 *		address
 */
struct rule {
	char where[256];
	struct endpoint listen, target;
	struct rule_options options;
};

const char *rule_target_name(const struct rule *rule,
			     char out[static RULE_NAME_LEN]);

#endif /* CONF_RULE_H */
