/* SPDX-License-Identifier: MIT */
/*
 * option_grammar.c - values of options that are more than a number or a word
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "conf/option_table.h"

/* The kernel's limit for either time is 32767 seconds. */
#define KEEPALIVE_S_MAX	    (9 * 3600)
#define KEEPALIVE_COUNT_MAX 127

/* A wait of more than this saves no time over a sleep. */
#define BUSY_POLL_US_MAX 100000

/* A time of whole seconds, from 1. */
static int read_seconds(unsigned *ret, const char *text)
{
	unsigned ms;
	int err = parse_ms(&ms, text);

	if (err || !ms || ms % 1000 || ms / 1000 > KEEPALIVE_S_MAX)
		return -EINVAL;
	*ret = ms / 1000;
	return 0;
}

/* IDLE:INTERVAL:COUNT, as in 2m:15s:4, or "off". */
static int keepalive_read(struct conf *conf, const char *text)
{
	char idle[32], interval[32], count[32];
	struct keepalive k = { 0 };
	int end = 0;

	if (!strcmp(text, "off")) {
		conf->options.sockopts.keepalive = k;
		return 0;
	}
	if (sscanf(text, "%31[^:]:%31[^:]:%31[^:]%n", idle, interval, count,
		   &end) != 3 ||
	    text[end] || read_seconds(&k.idle_s, idle) ||
	    read_seconds(&k.interval_s, interval) ||
	    parse_count(&k.count, count) || !k.count ||
	    k.count > KEEPALIVE_COUNT_MAX)
		return -EINVAL;
	k.requested = true;
	conf->options.sockopts.keepalive = k;
	return 0;
}

static void keepalive_format(const struct conf *conf,
			     char buf[static OPTION_VALUE_LEN])
{
	const struct keepalive *k = &conf->options.sockopts.keepalive;
	char idle[FORMAT_LEN], interval[FORMAT_LEN];

	if (k->idle_s)
		snprintf(buf, OPTION_VALUE_LEN, "%s:%s:%u",
			 format_ms(k->idle_s * 1000, idle),
			 format_ms(k->interval_s * 1000, interval), k->count);
	else
		strcpy(buf, "off");
}

const struct option_grammar option_keepalive = { keepalive_read,
						 keepalive_format };

/* "auto", "off", or microseconds. */
static int busy_poll_read(struct conf *conf, const char *text)
{
	bool adapts = !strcmp(text, "auto");
	unsigned us = adapts ? AUTO_BUSY_POLL_US : 0;

	if (!adapts && strcmp(text, "off") &&
	    (parse_count(&us, text) || !us || us > BUSY_POLL_US_MAX))
		return -EINVAL;
	conf->busy_poll_adapts = adapts;
	conf->busy_poll_us = us;
	return 0;
}

static void busy_poll_format(const struct conf *conf,
			     char buf[static OPTION_VALUE_LEN])
{
	if (conf->busy_poll_adapts || !conf->busy_poll_us)
		strcpy(buf, conf->busy_poll_adapts ? "auto" : "off");
	else
		snprintf(buf, OPTION_VALUE_LEN, "%u", conf->busy_poll_us);
}

const struct option_grammar option_busy_poll = { busy_poll_read,
						 busy_poll_format };
