/* SPDX-License-Identifier: MIT */
/*
 * arguments.c - command lines
 *
 * A line of the input is an argument; what follows an empty line is what every
 * file holds. Whatever they are: one of four verdicts, with one line logged if
 * it is to be an error, and none if not; and what is to be run can be.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "conf/option_table.h"
#include "fuzz/fuzz.h"
#include "relay/engine.h"

const char *const fuzz_words[] = {
	"--mode=splice\n",
	"--mode=copy\n",
	"--mode=auto\n",
	"--mode=uring\n",
	"--workers=auto\n",
	"--rcvbuf=auto\n",
	"--congestion=system\n",
	"--stats=none\n",
	"--idle-timout\n",
	"--pipe-size=64K\n",
	"--pipes=own\n",
	"--buffer-size=4K\n",
	"--workers=2\n",
	"--connect-timeout=1s\n",
	"--drain-timeout=0\n",
	"--idle-timeout=off\n",
	"--half-close-timeout=5m\n",
	"--max-lifetime=1h\n",
	"--linger=10\n",
	"--discard=0\n",
	"--keepalive=2m:15s:4\n",
	"--keepalive=off\n",
	"--user-timeout=500ms\n",
	"--dead-timeout=131s\n",
	"--log-level=debug\n",
	"--stats\n",
	"--stats=json\n",
	"--config=x\n",
	"-c\nx\n",
	"-h\n",
	"-V\n",
	"--help\n",
	"--version\n",
	"--\n",
	"-",
	"=",
	"127.0.0.1:0\n",
	"127.0.0.1:9\n",
	"[::1]:80\n",
	"8080\n",
	"\n\n",
	"127.0.0.1 0 ::1 9\n",
	"--buffer-size=17M\n",
	"--pipe-size=2G\n",
	"1G",
	"1025",
	"-hV\n",
	"--no\n",
	NULL,
};

#define MOST_ARGS 40

static void check_keepalive(const struct keepalive *k)
{
	if (!k->idle_s)
		promise(!k->interval_s && !k->count);
	else
		promise(k->idle_s <= 32767 && k->interval_s >= 1 &&
			k->interval_s <= 32767 && k->count >= 1 &&
			k->count <= 127);
}

static void check_tuning(const struct sockopts *t)
{
	check_keepalive(&t->keepalive);
	promise(!t->rcvbuf || t->rcvbuf >= 4096);
	promise(!t->sndbuf || t->sndbuf >= 4096);
	promise(!t->notsent_lowat || t->notsent_lowat >= 4096);
	promise(memchr(t->congestion, '\0', sizeof(t->congestion)));
}

static void check_rule(const struct rule *r)
{
	promise(*r->target.host && r->target.port);
}

/* What an option has stored is printed in a way that reads as the same. */
static void check_printed(const struct conf *c)
{
	char value[OPTION_VALUE_LEN], again[OPTION_VALUE_LEN];
	char why[OPTION_WHY_LEN];

	for (unsigned i = 0; i < option_count; i++) {
		const struct option_row *row = &option_rows[i];
		struct conf copy;

		if (row->type == OPTION_ACTION)
			continue;
		option_defaults(&copy);
		option_format(row, c, value);
		promise(!option_read(row, &copy, value, why));
		promise(!strcmp(option_format(row, &copy, again), value));
	}
}

/* What server_run() relies on. */
static void check_conf(const struct conf *c)
{
	promise(c->options.mode <= RELAY_AUTO || engine_of(c->options.mode));
	promise(c->pipe_size >= PIPE_SIZE_MIN && c->pipe_size <= PIPE_SIZE_MAX);
	promise(c->buffer_size >= 4096 && c->buffer_size <= 16 << 20);
	promise(c->workers >= 1 && c->workers <= 1024);
	promise(c->options.connect_timeout_ms > 0);
	promise(!c->options.dead_timeout_ms ||
		c->options.dead_timeout_ms >= 130000);
	promise(c->log_level <= LOG_DEBUG && c->stats <= STATS_JSON);
	check_tuning(&c->options.sockopts);
	promise(c->busy_poll_us <= 100000 &&
		(!c->busy_poll_adapts || c->busy_poll_us));
	check_printed(c);
	promise(c->n_rules > 0);
	for (unsigned i = 0; i < c->n_rules; i++)
		check_rule(c->rules[i]);
}

/* Cuts @text into arguments. Return: how many. */
static int cut(char *text, char **argv)
{
	int n = 0;

	argv[n++] = (char *)"sluice";
	while (*text && n < MOST_ARGS) {
		size_t len = strcspn(text, "\n");

		argv[n++] = text;
		text += len;
		if (*text)
			*text++ = '\0';
	}
	argv[n] = NULL;
	return n;
}

static void check(int argc, char **argv)
{
	struct conf *conf;
	enum conf_verdict verdict;

	optind = 0; /* as if getopt_long(3) had never been called */
	verdict = conf_load(&conf, argc, argv);
	switch (verdict) {
	case CONF_RUN:
		check_conf(conf);
		promise(!sandbox_lines() && !sandbox_usages());
		conf_unref(conf);
		break;
	case CONF_DONE:
		promise(!sandbox_lines() && sandbox_usages() == 1);
		break;
	default:
		promise(verdict == CONF_USAGE || verdict == CONF_FAILED);
		promise(sandbox_lines() == 1 && !sandbox_usages());
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *file = memmem(data, size, "\n\n", 2);
	char *argv[MOST_ARGS + 1], *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[file ? (size_t)(file - data) : size] = '\0';
	if (file)
		sandbox_begin(file + 2, size - (size_t)(file + 2 - data));
	else
		sandbox_begin(NULL, 0);
	check(cut(text, argv), argv);
	free(text);
	return 0;
}
