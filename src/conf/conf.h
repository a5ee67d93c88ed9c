/* SPDX-License-Identifier: MIT */
/*
 * conf.h - what the user asked for.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdatomic.h>

#include "base/log.h"
#include "conf/rule.h"

enum stats_format {
	STATS_NONE,
	STATS_TEXT,
	STATS_JSON,
};

/* --busy-poll=auto: the longest that a worker polls before it sleeps. */
#define AUTO_BUSY_POLL_US 50

/**
 * struct conf - rules, and the options of the process
 * @refs:	see conf_ref()
 * @rules:	@n_rules of them, each allocated by itself
 * @options:	of rules that have none of their own
 * @busy_poll_us, @busy_poll_adapts: as busy_poll_init() takes them
 * @stats:	what is printed at the end; SIGUSR1 prints text for STATS_NONE
 *
 * It never changes once conf_load() has returned. A reload makes another one,
 * and flows that began under the old one keep it.
 */
struct conf {
	_Atomic unsigned refs;
	struct rule **rules;
	unsigned n_rules;
	struct rule_options options;
	bool own_pipes;
	size_t pipe_size, buffer_size;
	unsigned workers;
	unsigned drain_timeout_ms;
	unsigned busy_poll_us;
	bool busy_poll_adapts;
	enum log_level log_level;
	enum stats_format stats;
};

/* What main() does next. */
enum conf_verdict {
	CONF_RUN,
	CONF_DONE,   /* --help or --version was printed: exit 0 */
	CONF_USAGE,  /* the command line is wrong, and it was logged: exit 2 */
	CONF_FAILED, /* a file is wrong, or memory short; logged: exit 1 */
};

struct conf *conf_new(void);
enum conf_verdict conf_load(struct conf **ret, int argc, char **argv);
struct conf *conf_ref(struct conf *conf);
void conf_unref(struct conf *conf);

struct rule *conf_add_rule(struct conf *conf);

const char *conf_mode_name(enum relay_mode mode);
bool conf_uses(const struct conf *conf, enum relay_mode mode);

static inline bool conf_uses_pipes(const struct conf *conf)
{
	return conf_uses(conf, RELAY_SPLICE) || conf_uses(conf, RELAY_AUTO);
}

#endif /* CONF_CONF_H */
