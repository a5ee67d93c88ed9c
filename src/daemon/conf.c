/* SPDX-License-Identifier: MIT */
/*
 * conf.c - what the user asked for, read from the command line.
 */
#include "daemon/conf.h"

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "daemon/usage.h"

#define MOST_WORKERS 1024

/* The kernel's limit for either time is 32767 seconds. */
#define MOST_KEEPALIVE_MS (9 * 3600 * 1000)

/* A shut window is probed every two minutes at the latest. */
#define LEAST_DEAD_MS 130000

#define DEFAULT_PIPE_SIZE   ((size_t)1 << 20)
#define DEFAULT_BUFFER_SIZE ((size_t)64 << 10)
#define LEAST_BUFFER_SIZE   ((size_t)4 << 10)
#define MOST_BUFFER_SIZE    ((size_t)16 << 20)

enum option_id {
	OPT_CONFIG = 'c',
	OPT_HELP = 'h',
	OPT_VERSION = 'V',
	OPT_MODE = 256,
	OPT_PIPES,
	OPT_PIPE_SIZE,
	OPT_BUFFER_SIZE,
	OPT_WORKERS,
	OPT_CONNECT_TIMEOUT,
	OPT_DRAIN_TIMEOUT,
	OPT_IDLE_TIMEOUT,
	OPT_HALF_CLOSE_TIMEOUT,
	OPT_MAX_LIFETIME,
	OPT_LINGER,
	OPT_DISCARD,
	OPT_KEEPALIVE,
	OPT_USER_TIMEOUT,
	OPT_DEAD_TIMEOUT,
	OPT_LOG_LEVEL,
	OPT_STATS,
};

static const struct option options[] = {
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "pipes", required_argument, NULL, OPT_PIPES },
	{ "pipe-size", required_argument, NULL, OPT_PIPE_SIZE },
	{ "buffer-size", required_argument, NULL, OPT_BUFFER_SIZE },
	{ "workers", required_argument, NULL, OPT_WORKERS },
	{ "connect-timeout", required_argument, NULL, OPT_CONNECT_TIMEOUT },
	{ "drain-timeout", required_argument, NULL, OPT_DRAIN_TIMEOUT },
	{ "idle-timeout", required_argument, NULL, OPT_IDLE_TIMEOUT },
	{ "half-close-timeout", required_argument, NULL, OPT_HALF_CLOSE_TIMEOUT },
	{ "max-lifetime", required_argument, NULL, OPT_MAX_LIFETIME },
	{ "linger", required_argument, NULL, OPT_LINGER },
	{ "discard", required_argument, NULL, OPT_DISCARD },
	{ "keepalive", required_argument, NULL, OPT_KEEPALIVE },
	{ "user-timeout", required_argument, NULL, OPT_USER_TIMEOUT },
	{ "dead-timeout", required_argument, NULL, OPT_DEAD_TIMEOUT },
	{ "log-level", required_argument, NULL, OPT_LOG_LEVEL },
	{ "stats", optional_argument, NULL, OPT_STATS },
	{ NULL, 0, NULL, 0 },
};

static const char *const modes[] = { "splice", "copy", "auto", NULL };
static const char *const pipes[] = { "lend", "own", NULL };
static const char *const levels[] = { "error", "warn", "info", "debug", NULL };
static const char *const formats[] = { "text", "json", NULL };

const char *conf_mode_name(enum relay_mode mode)
{
	return modes[mode];
}

static unsigned count_cpus(void)
{
	cpu_set_t set;
	int n = 1;

	if (!sched_getaffinity(0, sizeof(set), &set))
		n = CPU_COUNT(&set);
	return n > 0 ? (unsigned)n : 1;
}

/* The place of @text in a list of words. Return: NULL, or what is wrong. */
static const char *pick(unsigned *ret, const char *text,
			const char *const *words, const char *wrong)
{
	for (unsigned i = 0; words[i]; i++)
		if (!strcmp(text, words[i])) {
			*ret = i;
			return NULL;
		}
	return wrong;
}

static const char *read_size(size_t *ret, const char *text, size_t least,
			     size_t most, const char *wrong)
{
	const char *why = parse_size(ret, text);

	return why ? why : *ret < least || *ret > most ? wrong : NULL;
}

static const char *read_workers(unsigned *ret, const char *text)
{
	const char *why = parse_count(ret, text);

	return why			      ? why
	       : !*ret || *ret > MOST_WORKERS ? "it must be from 1 to 1024"
					      : NULL;
}

/* A time limit, or "off", which is 0. */
static const char *read_limit(unsigned *ret, const char *text)
{
	const char *why;

	if (!strcmp(text, "off")) {
		*ret = 0;
		return NULL;
	}
	why = parse_ms(ret, text);
	return why ? why : *ret ? NULL : "0 would end it at once; or off";
}

/* IDLE:INTERVAL:COUNT, as in 2m:15s:4, or "off". */
static const char *read_keepalive(struct keepalive *ret, const char *text)
{
	static const char wrong[] = "it is IDLE:INTERVAL:COUNT, as in "
				    "2m:15s:4, from 1s:1s:1 to 9h:9h:127; "
				    "or off";
	char idle[32], interval[32], count[32];
	unsigned idle_ms, interval_ms, n;
	int end = 0;

	if (!strcmp(text, "off")) {
		*ret = (struct keepalive){ 0 };
		return NULL;
	}
	if (sscanf(text, "%31[^:]:%31[^:]:%31[^:]%n", idle, interval, count,
		   &end) != 3 ||
	    text[end] || parse_ms(&idle_ms, idle) ||
	    parse_ms(&interval_ms, interval) || parse_count(&n, count))
		return wrong;
	if (idle_ms < 1000 || interval_ms < 1000 || !n || n > 127 ||
	    idle_ms > MOST_KEEPALIVE_MS || interval_ms > MOST_KEEPALIVE_MS)
		return wrong;
	*ret = (struct keepalive){ idle_ms / 1000, interval_ms / 1000, n };
	return NULL;
}

/* One option. Return: NULL, or what is wrong with its value. */
static const char *read_option(struct conf *conf, int id, const char *text)
{
	unsigned n = 0;
	const char *why = NULL;

	switch (id) {
	case OPT_MODE:
		why = pick(&n, text, modes,
			   "the modes are splice, copy and auto");
		conf->mode = (enum relay_mode)n;
		break;
	case OPT_PIPES:
		why = pick(&n, text, pipes, "pipes are lend or own");
		conf->own_pipes = n;
		break;
	case OPT_PIPE_SIZE:
		why = read_size(&conf->pipe_size, text, PIPE_LEAST, PIPE_MOST,
				"it must be from 64K to 1G");
		break;
	case OPT_BUFFER_SIZE:
		why = read_size(&conf->buffer_size, text, LEAST_BUFFER_SIZE,
				MOST_BUFFER_SIZE, "it must be from 4K to 16M");
		break;
	case OPT_WORKERS:
		why = read_workers(&conf->workers, text);
		break;
	case OPT_CONNECT_TIMEOUT:
		why = parse_ms(&conf->connect_timeout_ms, text);
		if (!why && !conf->connect_timeout_ms)
			why = "it must be longer than nothing";
		break;
	case OPT_DRAIN_TIMEOUT:
		why = parse_ms(&conf->drain_timeout_ms, text);
		break;
	case OPT_IDLE_TIMEOUT:
		why = read_limit(&conf->idle_timeout_ms, text);
		break;
	case OPT_HALF_CLOSE_TIMEOUT:
		why = read_limit(&conf->half_close_timeout_ms, text);
		break;
	case OPT_MAX_LIFETIME:
		why = read_limit(&conf->max_lifetime_ms, text);
		break;
	case OPT_LINGER:
		why = parse_ms(&conf->linger_ms, text);
		break;
	case OPT_DISCARD:
		why = parse_size(&conf->discard_max, text);
		break;
	case OPT_KEEPALIVE:
		why = read_keepalive(&conf->keepalive, text);
		break;
	case OPT_USER_TIMEOUT:
		why = read_limit(&conf->user_timeout_ms, text);
		break;
	case OPT_DEAD_TIMEOUT:
		why = read_limit(&conf->dead_timeout_ms, text);
		if (!why && conf->dead_timeout_ms &&
		    conf->dead_timeout_ms < LEAST_DEAD_MS)
			why = "a live peer may need 130s to answer; or off";
		break;
	case OPT_LOG_LEVEL:
		why = pick(&n, text, levels,
			   "the levels are error, warn, info and debug");
		conf->log_level = (enum log_level)n;
		break;
	case OPT_STATS:
		why = pick(&n, text ? text : "text", formats,
			   "the formats are text and json");
		conf->stats = n ? STATS_JSON : STATS_TEXT;
		break;
	}
	return why;
}

/* The long name of an option, NULL if there is no such option. */
static const char *option_name(int id)
{
	for (const struct option *o = options; o->name; o++)
		if (o->val == id)
			return o->name;
	return NULL;
}

/* What getopt_long(3) did not like, in our words. */
static enum conf_verdict bad_option(int c, char **argv)
{
	/* In a cluster, as in -xy, this is still the word before. */
	const char *word = argv[optind - 1];

	if (c == ':')
		log_error("%.200s: a value is missing; see sluice --help", word);
	else if (!optopt)
		log_error("%.200s: no such option; see sluice --help", word);
	else if (option_name(optopt))
		log_error("%.200s: it takes no value; see sluice --help", word);
	else
		log_error("-%c: no such option; see sluice --help", optopt);
	return CONF_USAGE;
}

static enum conf_verdict read_options(struct conf *conf, int argc, char **argv,
				      const char **file)
{
	const char *why;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":c:hV", options, NULL)) != -1) {
		switch (c) {
		case OPT_HELP:
			usage_print();
			return CONF_DONE;
		case OPT_VERSION:
			usage_print_version();
			return CONF_DONE;
		case OPT_CONFIG:
			if (*file) {
				log_error("-c %.200s: there is one already",
					  optarg);
				return CONF_USAGE;
			}
			*file = optarg;
			continue;
		case ':':
		case '?':
			return bad_option(c, argv);
		}
		why = read_option(conf, c, optarg);
		if (why) {
			log_error("--%s=%.200s: %s", option_name(c), optarg, why);
			return CONF_USAGE;
		}
	}
	return CONF_RUN;
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

	*conf = (struct conf){
		.mode = RELAY_SPLICE,
		.pipe_size = DEFAULT_PIPE_SIZE,
		.buffer_size = DEFAULT_BUFFER_SIZE,
		.workers = count_cpus(),
		.connect_timeout_ms = 10000,
		.drain_timeout_ms = 5000,
		.dead_timeout_ms = 180000,
		.linger_ms = 30000,
		.discard_max = (size_t)64 << 20,
		.keepalive = { 120, 15, 4 },
		.log_level = LOG_WARN,
	};
	verdict = read_options(conf, argc, argv, &file);
	if (verdict == CONF_RUN)
		verdict = read_rules(conf, argc - optind, argv + optind, file);
	for (unsigned i = 0; verdict == CONF_RUN && i < conf->n_rules; i++)
		if (rule_resolve(&conf->rules[i]))
			verdict = CONF_FAILED;
	return verdict;
}

void conf_fini(struct conf *conf)
{
	for (unsigned i = 0; i < conf->n_rules; i++)
		rule_fini(&conf->rules[i]);
	free(conf->rules);
	*conf = (struct conf){ 0 };
}
