/* SPDX-License-Identifier: MIT */
/*
 * conf.c - what the user asked for: options, rules, and what holds without.
 */
#include "conf/conf.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf_file.h"
#include "conf/option_table.h"
#include "conf/options.h"

static unsigned count_cpus(void)
{
	cpu_set_t set;
	int n = 1;

	if (!sched_getaffinity(0, sizeof(set), &set))
		n = CPU_COUNT(&set);
	return n > 0 ? (unsigned)n : 1;
}

static enum conf_verdict read_pair(struct conf *conf, char **argv)
{
	struct rule *rule = conf_add_rule(conf);
	const char *why;

	if (!rule) {
		log_error("%s", strerror(ENOMEM));
		return CONF_FAILED;
	}
	why = parse_listen(&rule->listen, argv[0]);
	if (why) {
		log_error("LISTEN \"%.200s\": %s", argv[0], why);
		return CONF_USAGE;
	}
	why = parse_target(&rule->target, argv[1]);
	if (why) {
		log_error("TARGET \"%.200s\": %s", argv[1], why);
		return CONF_USAGE;
	}
	return CONF_RUN;
}

static enum conf_verdict read_rules(struct conf *conf, int argc, char **argv,
				    const char *file)
{
	if (file && argc) {
		log_error("\"%.200s\": rules come from -c FILE or from the "
			  "command line, not from both",
			  argv[0]);
		return CONF_USAGE;
	}
	if (file)
		return conf_read_file(conf, file) ? CONF_FAILED : CONF_RUN;
	if (!argc) {
		log_error("nothing to forward: give LISTEN and TARGET, as in "
			  "sluice 8080 192.0.2.1:80, or -c FILE");
		return CONF_USAGE;
	}
	if (argc % 2) {
		log_error("LISTEN \"%.200s\": its TARGET is missing",
			  argv[argc - 1]);
		return CONF_USAGE;
	}
	for (int i = 0; i < argc; i += 2) {
		enum conf_verdict verdict = read_pair(conf, argv + i);

		if (verdict != CONF_RUN)
			return verdict;
	}
	return CONF_RUN;
}

/* Return: defaults and no rules, with one reference; or NULL for want of memory. */
struct conf *conf_new(void)
{
	struct conf *conf = calloc(1, sizeof(*conf));

	if (!conf)
		return NULL;
	option_defaults(conf);
	atomic_init(&conf->refs, 1);
	conf->options.sockopts.keepalive.requested = false;
	return conf;
}

/**
 * conf_load() - read the command line, and the file that it names
 * @ret:	with CONF_RUN, the configuration, which the caller gives back by
 *		conf_unref(); otherwise not written
 */
enum conf_verdict conf_load(struct conf **ret, int argc, char **argv)
{
	struct conf *conf = conf_new();
	const char *file = NULL;
	enum conf_verdict verdict;

	if (!conf) {
		log_error("%s", strerror(ENOMEM));
		return CONF_FAILED;
	}
	verdict = options_read(conf, argc, argv, &file);
	if (!conf->workers)
		conf->workers = count_cpus();
	if (verdict == CONF_RUN)
		verdict = read_rules(conf, argc - optind, argv + optind, file);
	if (verdict == CONF_RUN)
		*ret = conf;
	else
		conf_unref(conf);
	return verdict;
}

/* Any thread may, as long as another reference lives meanwhile. */
struct conf *conf_ref(struct conf *conf)
{
	atomic_fetch_add_explicit(&conf->refs, 1, memory_order_relaxed);
	return conf;
}

/* The last reference frees it; NULL is harmless. */
void conf_unref(struct conf *conf)
{
	if (!conf ||
	    atomic_fetch_sub_explicit(&conf->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (unsigned i = 0; i < conf->n_rules; i++)
		free(conf->rules[i]);
	free(conf->rules);
	free(conf);
}

/**
 * conf_add_rule() - add a rule, with the options of the command line
 *
 * Return: a rule at the end, empty but for its options, or NULL for want of
 *	memory.
 */
struct rule *conf_add_rule(struct conf *conf)
{
	struct rule *rule = calloc(1, sizeof(*rule));
	struct rule **rules = reallocarray(conf->rules, conf->n_rules + 1,
					   sizeof(struct rule *));

	if (rules)
		conf->rules = rules;
	if (!rule || !rules) {
		free(rule);
		return NULL;
	}
	rule->options = conf->options;
	rules[conf->n_rules++] = rule;
	return rule;
}

/* Whether any rule has @mode. */
bool conf_uses(const struct conf *conf, enum relay_mode mode)
{
	for (unsigned i = 0; i < conf->n_rules; i++)
		if (conf->rules[i]->options.mode == mode)
			return true;
	return false;
}
