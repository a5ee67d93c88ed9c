/* SPDX-License-Identifier: MIT */
/*
 * options.c - the options of the command line
 *
 * One table names every option and who reads its value; such a reader returns
 * NULL, or what is wrong with the value.
 */
#include "daemon/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "daemon/usage.h"
#include "relay/defaults.h"
#include "relay/engine.h"

#define MOST_WORKERS 1024

/* The kernel's limit for either time is 32767 seconds. */
#define MOST_KEEPALIVE_MS (9 * 3600 * 1000)

/* A shut window is probed every two minutes at the latest. */
#define LEAST_DEAD_MS 130000

#define LEAST_SOCKBUF ((size_t)4 << 10)
#define MOST_SOCKBUF  ((size_t)1 << 30)

/* Looking longer than this is no pause before sleeping any more. */
#define MOST_LOOK_US 100000

static const char *const modes[] = { "splice", "copy", "auto", "uring", NULL };
static const char *const pipes[] = { "lend", "own", NULL };
static const char *const levels[] = { "error", "warn", "info", "debug", NULL };
static const char *const formats[] = { "text", "json", NULL };

const char *conf_mode_name(enum relay_mode mode)
{
	return modes[mode];
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

/* A size for a socket, which the kernel takes as an int. */
static const char *read_sockbuf(int *ret, const char *text)
{
	size_t size = 0;
	const char *why = read_size(&size, text, LEAST_SOCKBUF, MOST_SOCKBUF,
				    "it must be from 4K to 1G");

	*ret = (int)size;
	return why;
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

static const char *set_mode(struct conf *conf, const char *text)
{
	unsigned n = 0;
	const char *why = pick(&n, text, modes,
			       "the modes are splice, copy, auto and uring");

	if (n == RELAY_URING && !engine_of(RELAY_URING))
		why = "this sluice was built without io_uring; "
		      "meson setup -Dliburing=enabled builds it with it";
	conf->mode = (enum relay_mode)n;
	return why;
}

static const char *set_pipes(struct conf *conf, const char *text)
{
	unsigned n = 0;
	const char *why = pick(&n, text, pipes, "pipes are lend or own");

	conf->own_pipes = n;
	return why;
}

static const char *set_pipe_size(struct conf *conf, const char *text)
{
	return read_size(&conf->pipe_size, text, PIPE_LEAST, PIPE_MOST,
			 "it must be from 64K to 1G");
}

static const char *set_buffer_size(struct conf *conf, const char *text)
{
	return read_size(&conf->buffer_size, text, BUFFER_SIZE_MIN,
			 BUFFER_SIZE_MAX, "it must be from 4K to 16M");
}

static const char *set_workers(struct conf *conf, const char *text)
{
	const char *why = parse_count(&conf->workers, text);

	if (!why && (!conf->workers || conf->workers > MOST_WORKERS))
		why = "it must be from 1 to 1024";
	return why;
}

/* "auto", "off", or microseconds. */
static const char *set_busy_poll(struct conf *conf, const char *text)
{
	conf->look_adapts = !strcmp(text, "auto");
	conf->look_us = conf->look_adapts ? AUTO_LOOK_US : 0;
	if (conf->look_adapts || !strcmp(text, "off"))
		return NULL;
	if (parse_count(&conf->look_us, text) || !conf->look_us ||
	    conf->look_us > MOST_LOOK_US)
		return "it is auto, off, or microseconds from 1 to 100000";
	return NULL;
}

static const char *set_connect_timeout(struct conf *conf, const char *text)
{
	const char *why = parse_ms(&conf->connect_timeout_ms, text);

	if (!why && !conf->connect_timeout_ms)
		why = "it must be longer than nothing";
	return why;
}

static const char *set_drain_timeout(struct conf *conf, const char *text)
{
	return parse_ms(&conf->drain_timeout_ms, text);
}

static const char *set_idle_timeout(struct conf *conf, const char *text)
{
	return read_limit(&conf->idle_timeout_ms, text);
}

static const char *set_half_close_timeout(struct conf *conf, const char *text)
{
	return read_limit(&conf->half_close_timeout_ms, text);
}

static const char *set_max_lifetime(struct conf *conf, const char *text)
{
	return read_limit(&conf->max_lifetime_ms, text);
}

static const char *set_linger(struct conf *conf, const char *text)
{
	return parse_ms(&conf->linger_ms, text);
}

static const char *set_discard(struct conf *conf, const char *text)
{
	return parse_size(&conf->discard_max, text);
}

/* IDLE:INTERVAL:COUNT, as in 2m:15s:4, or "off". */
static const char *set_keepalive(struct conf *conf, const char *text)
{
	static const char wrong[] = "it is IDLE:INTERVAL:COUNT, as in "
				    "2m:15s:4, from 1s:1s:1 to 9h:9h:127; "
				    "or off";
	char idle[32], interval[32], count[32];
	unsigned idle_ms, interval_ms, n;
	int end = 0;

	if (!strcmp(text, "off")) {
		conf->tuning.keepalive = (struct keepalive){ 0 };
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
	conf->tuning.keepalive =
		(struct keepalive){ idle_ms / 1000, interval_ms / 1000, n, true };
	return NULL;
}

static const char *set_user_timeout(struct conf *conf, const char *text)
{
	return read_limit(&conf->tuning.user_timeout_ms, text);
}

static const char *set_dead_timeout(struct conf *conf, const char *text)
{
	const char *why = read_limit(&conf->dead_timeout_ms, text);

	if (!why && conf->dead_timeout_ms && conf->dead_timeout_ms < LEAST_DEAD_MS)
		why = "a live peer may need 130s to answer; or off";
	return why;
}

static const char *set_rcvbuf(struct conf *conf, const char *text)
{
	return read_sockbuf(&conf->tuning.rcvbuf, text);
}

static const char *set_sndbuf(struct conf *conf, const char *text)
{
	return read_sockbuf(&conf->tuning.sndbuf, text);
}

static const char *set_notsent_lowat(struct conf *conf, const char *text)
{
	return read_sockbuf(&conf->tuning.notsent_lowat, text);
}

static const char *set_congestion(struct conf *conf, const char *text)
{
	if (!*text || strlen(text) >= sizeof(conf->tuning.congestion))
		return "it is a name of at most 15 letters, as in cubic";
	strcpy(conf->tuning.congestion, text);
	return NULL;
}

static const char *set_mptcp(struct conf *conf, const char *text)
{
	(void)text;
	conf->tuning.mptcp = true;
	return NULL;
}

static const char *set_freebind(struct conf *conf, const char *text)
{
	(void)text;
	conf->tuning.freebind = true;
	return NULL;
}

static const char *set_log_level(struct conf *conf, const char *text)
{
	unsigned n = 0;
	const char *why = pick(&n, text, levels,
			       "the levels are error, warn, info and debug");

	conf->log_level = (enum log_level)n;
	return why;
}

static const char *set_stats(struct conf *conf, const char *text)
{
	unsigned n = 0;
	const char *why = pick(&n, text ? text : "text", formats,
			       "the formats are text and json");

	conf->stats = n ? STATS_JSON : STATS_TEXT;
	return why;
}

/* Every option: its name, its short one, whether it takes a value, and who
 * reads that; those without a reader are for options_read() itself. */
static const struct {
	const char *name;
	char letter;
	int has_value;
	const char *(*set)(struct conf *conf, const char *text);
} table[] = {
	{ "config", 'c', required_argument, NULL },
	{ "help", 'h', no_argument, NULL },
	{ "version", 'V', no_argument, NULL },
	{ "mode", 0, required_argument, set_mode },
	{ "pipes", 0, required_argument, set_pipes },
	{ "pipe-size", 0, required_argument, set_pipe_size },
	{ "buffer-size", 0, required_argument, set_buffer_size },
	{ "workers", 0, required_argument, set_workers },
	{ "busy-poll", 0, required_argument, set_busy_poll },
	{ "connect-timeout", 0, required_argument, set_connect_timeout },
	{ "drain-timeout", 0, required_argument, set_drain_timeout },
	{ "idle-timeout", 0, required_argument, set_idle_timeout },
	{ "half-close-timeout", 0, required_argument, set_half_close_timeout },
	{ "max-lifetime", 0, required_argument, set_max_lifetime },
	{ "linger", 0, required_argument, set_linger },
	{ "discard", 0, required_argument, set_discard },
	{ "keepalive", 0, required_argument, set_keepalive },
	{ "user-timeout", 0, required_argument, set_user_timeout },
	{ "dead-timeout", 0, required_argument, set_dead_timeout },
	{ "rcvbuf", 0, required_argument, set_rcvbuf },
	{ "sndbuf", 0, required_argument, set_sndbuf },
	{ "notsent-lowat", 0, required_argument, set_notsent_lowat },
	{ "congestion", 0, required_argument, set_congestion },
	{ "mptcp", 0, no_argument, set_mptcp },
	{ "freebind", 0, no_argument, set_freebind },
	{ "log-level", 0, required_argument, set_log_level },
	{ "stats", 0, optional_argument, set_stats },
};

/* What getopt_long(3) returns for options without a letter. */
#define FIRST_ID 256

static int id_of(unsigned i)
{
	return table[i].letter ? table[i].letter : FIRST_ID + (int)i;
}

/* The table as getopt_long(3) wants it. */
static const struct option *long_options(void)
{
	static struct option options[array_size(table) + 1];

	for (unsigned i = 0; i < array_size(table); i++)
		options[i] = (struct option){ table[i].name, table[i].has_value,
					      NULL, id_of(i) };
	return options;
}

/* Whether there is such an option. */
static bool is_known(int id)
{
	for (unsigned i = 0; i < array_size(table); i++)
		if (id_of(i) == id)
			return true;
	return false;
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
	else if (is_known(optopt))
		log_error("%.200s: it takes no value; see sluice --help", word);
	else
		log_error("-%c: no such option; see sluice --help", optopt);
	return CONF_USAGE;
}

static enum conf_verdict set_file(const char **file, const char *path)
{
	if (*file) {
		log_error("-c %.200s: there is one already", path);
		return CONF_USAGE;
	}
	*file = path;
	return CONF_RUN;
}

/* One option that has a reader. */
static enum conf_verdict set_value(struct conf *conf, unsigned i, const char *text)
{
	const char *why = table[i].set(conf, text);

	if (!why)
		return CONF_RUN;
	log_error("--%s=%.200s: %s", table[i].name, text, why);
	return CONF_USAGE;
}

static enum conf_verdict read_one(struct conf *conf, int c, char **argv,
				  const char **file)
{
	switch (c) {
	case 'h':
		usage_print();
		return CONF_DONE;
	case 'V':
		usage_print_version();
		return CONF_DONE;
	case 'c':
		return set_file(file, optarg);
	case ':':
	case '?':
		return bad_option(c, argv);
	}
	return set_value(conf, (unsigned)(c - FIRST_ID), optarg);
}

/**
 * options_read() - read the options of a command line
 * @file:	NULL, or set to what -c names, which is not read here
 *
 * Leaves optind(3) at the first word that is no option.
 *
 * Return: CONF_RUN to go on.
 */
enum conf_verdict options_read(struct conf *conf, int argc, char **argv,
			       const char **file)
{
	const struct option *options = long_options();
	enum conf_verdict verdict = CONF_RUN;
	int c;

	opterr = 0;
	while (verdict == CONF_RUN &&
	       (c = getopt_long(argc, argv, ":c:hV", options, NULL)) != -1)
		verdict = read_one(conf, c, argv, file);
	return verdict;
}
