/* SPDX-License-Identifier: MIT */
/*
 * conf.h - what the user asked for; never changes once it is read.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include "base/log.h"
#include "conf/rule.h"
#include "net/sock.h"
#include "relay/relay.h"

enum stats_format {
	STATS_NONE,
	STATS_TEXT,
	STATS_JSON,
};

/* How long a worker may look before it sleeps, if it is worth it. */
#define AUTO_BUSY_POLL_US 50

/**
 * struct conf - options, of which option_table.c has a row each, and rules
 * @rules:	owned
 * @*_ms:	times in milliseconds; 0 is never, where there is no limit
 * @busy_poll_us, @busy_poll_adapts: as busy_poll_init() takes them
 * @stats:	what is printed at the end; SIGUSR1 prints text if it is none
 */
struct conf {
	struct rule *rules;
	unsigned n_rules;
	enum relay_mode mode;
	bool own_pipes;
	size_t pipe_size, buffer_size;
	unsigned workers;
	unsigned connect_timeout_ms, drain_timeout_ms;
	unsigned idle_timeout_ms, half_close_timeout_ms, max_lifetime_ms;
	unsigned dead_timeout_ms;
	unsigned linger_ms;
	size_t discard_max;
	struct sockopts sockopts;
	unsigned busy_poll_us;
	bool busy_poll_adapts;
	enum log_level log_level;
	enum stats_format stats;
};

/* What main() is to do next. */
enum conf_verdict {
	CONF_RUN,
	CONF_DONE,   /* --help or --version: printed */
	CONF_USAGE,  /* wrong use: said so; exit 2 */
	CONF_FAILED, /* cannot be done: said so; exit 1 */
};

enum conf_verdict conf_load(struct conf *conf, int argc, char **argv);
void conf_fini(struct conf *conf);
const char *conf_mode_name(enum relay_mode mode);

static inline bool conf_uses_pipes(const struct conf *conf)
{
	return conf->mode == RELAY_SPLICE || conf->mode == RELAY_AUTO;
}

/* conf_file.c */
struct rule *conf_add_rule(struct conf *conf);
int conf_read_file(struct conf *conf, const char *path);

#endif /* CONF_CONF_H */
