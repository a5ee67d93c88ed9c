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

/**
 * conf_load() - read the command line, and the file it names
 *
 * @conf must be given to conf_fini(), whatever is returned.
 */
enum conf_verdict conf_load(struct conf *conf, int argc, char **argv)
{
	const char *file = NULL;
	enum conf_verdict verdict;

	option_defaults(conf);
	conf->sockopts.keepalive.requested = false;
	verdict = options_read(conf, argc, argv, &file);
	if (!conf->workers)
		conf->workers = count_cpus();
	if (verdict == CONF_RUN)
		verdict = read_rules(conf, argc - optind, argv + optind, file);
	return verdict;
}

void conf_fini(struct conf *conf)
{
	for (unsigned i = 0; i < conf->n_rules; i++)
		rule_fini(&conf->rules[i]);
	free(conf->rules);
	*conf = (struct conf){ 0 };
}
