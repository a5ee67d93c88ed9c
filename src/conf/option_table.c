/* SPDX-License-Identifier: MIT */
/*
 * option_table.c - every option of the program, a row each
 *
 * Defaults are here and in relay/defaults.h alone. What sluice(8) says of names,
 * arguments, ranges and defaults is compared with --help by a lint, and --help is
 * printed from here, in this order.
 */
#include "conf/option_table.h"

#include <assert.h>
#include <string.h>

#include "base/util.h"
#include "relay/defaults.h"
#include "relay/engine.h"

#define SECOND 1000u
#define MINUTE (60 * SECOND)

/* A live peer may need as long: a closed window is probed every two minutes. */
#define DEAD_MS_MIN (130 * SECOND)

#define SOCKBUF_MIN ((size_t)4 << 10)
#define SOCKBUF_MAX ((size_t)1 << 30)

static const char *const modes[] = { "splice", "copy", "auto", "uring", NULL };
static_assert(array_size(modes) == RELAY_URING + 2, "a word for each mode");

static const char *const pipes[] = { "lend", "own", NULL };
static_assert(array_size(pipes) == true + 2, "words for false and true");

static const char *const levels[] = { "error", "warn", "info", "debug", NULL };
static_assert(array_size(levels) == LOG_DEBUG + 2, "a word for each level");

static const char *const formats[] = { "none", "text", "json", NULL };
static_assert(array_size(formats) == STATS_JSON + 2, "a word for each format");

const char *conf_mode_name(enum relay_mode mode)
{
	return modes[mode];
}

static const char *refuse_mode(unsigned long long mode)
{
	return mode == RELAY_URING && !engine_of(RELAY_URING)
		       ? "this sluice was built without io_uring; build it "
			 "with meson setup -Dliburing=enabled"
		       : NULL;
}

/* Where a value is stored. */
#define IN(member)                               \
	.offset = offsetof(struct conf, member), \
	.size = sizeof(((struct conf *)NULL)->member)

#define FLAG(member)	   .type = OPTION_FLAG, IN(member), .bare = "on"
#define WORD(member, list) .type = OPTION_ENUM, IN(member), .words = (list)
#define COUNT(member)	   .type = OPTION_COUNT, IN(member)
#define SIZE(member)	   .type = OPTION_SIZE, IN(member)
#define TIME(member)	   .type = OPTION_TIME, IN(member), .max = OPTION_TIME_MAX
#define TEXT(member)                               \
	.type = OPTION_TEXT, IN(member), .min = 1, \
	.max = sizeof(((struct conf *)NULL)->member) - 1
/* A time that may be without end. */
#define LIMIT(member) TIME(member), .min = 1, .zero = "off"
/* A size that the kernel takes as an int, or chooses. */
#define SOCKBUF(member) SIZE(member), .min = SOCKBUF_MIN, .max = SOCKBUF_MAX

const struct option_row option_rows[] = {
	{
		"config",
		.letter = 'c',
		.arg = "FILE",
		.help = "read the rules from FILE, one a line",
	},
	{
		"mode",
		.scope = OPTION_RULE,
		WORD(options.mode, modes),
		.preset = RELAY_AUTO,
		.refuse = refuse_mode,
		.help = "how data moves between the sockets",
	},
	{
		"pipe-size",
		SIZE(pipe_size),
		.min = PIPE_SIZE_MIN,
		.max = PIPE_SIZE_MAX,
		.preset = DEFAULT_PIPE_SIZE,
		.help = "size of a pipe",
	},
	{
		"pipes",
		WORD(own_pipes, pipes),
		.help = "lend pipes, or keep two a connection",
	},
	{
		"buffer-size",
		SIZE(buffer_size),
		.min = BUFFER_SIZE_MIN,
		.max = BUFFER_SIZE_MAX,
		.preset = DEFAULT_BUFFER_SIZE,
		.help = "size of a buffer",
	},
	{
		"workers",
		COUNT(workers),
		.min = 1,
		.max = 1024,
		.zero = "auto",
		.help = "worker threads",
	},
	{
		"busy-poll",
		.type = OPTION_GRAMMAR,
		.arg = "auto|off|N",
		.grammar = &option_busy_poll,
		.text_min = "1",
		.text_max = "100000",
		.text_preset = "auto",
		.help = "poll N us before sleep",
	},
	{
		"connect-timeout",
		.scope = OPTION_RULE,
		TIME(options.connect_timeout_ms),
		.min = 1,
		.preset = 10 * SECOND,
		.help = "timeout of each target address",
	},
	{
		"drain-timeout",
		TIME(drain_timeout_ms),
		.preset = 5 * SECOND,
		.help = "from SIGTERM to the reset of connections",
	},
	{
		"idle-timeout",
		.scope = OPTION_RULE,
		LIMIT(options.idle_timeout_ms),
		.help = "reset after this time without data",
	},
	{
		"half-close-timeout",
		.scope = OPTION_RULE,
		LIMIT(options.half_close_timeout_ms),
		.help = "idle timeout after the first FIN",
	},
	{
		"max-lifetime",
		.scope = OPTION_RULE,
		LIMIT(options.max_lifetime_ms),
		.help = "maximum age of a connection",
	},
	{
		"linger",
		.scope = OPTION_RULE,
		TIME(options.linger_ms),
		.preset = DEFAULT_LINGER_MS,
		.help = "time to deliver data after a reset",
	},
	{
		"discard",
		.scope = OPTION_RULE,
		SIZE(options.discard_max),
		.max = OPTION_SIZE_MAX,
		.preset = DEFAULT_DISCARD_MAX,
		.help = "bytes to read and discard after a reset",
	},
	{
		"keepalive",
		.scope = OPTION_RULE,
		.type = OPTION_GRAMMAR,
		.arg = "IDLE:INTERVAL:COUNT|off",
		.grammar = &option_keepalive,
		.text_min = "1s:1s:1",
		.text_max = "9h:9h:127",
		.text_preset = "2m:15s:4",
		.help = "probe idle peers",
	},
	{
		"dead-timeout",
		.scope = OPTION_RULE,
		TIME(options.dead_timeout_ms),
		.min = DEAD_MS_MIN,
		.preset = 3 * MINUTE,
		.zero = "off",
		.help = "unanswered window probes",
	},
	{
		"user-timeout",
		.scope = OPTION_RULE,
		LIMIT(options.sockopts.user_timeout_ms),
		.help = "TCP_USER_TIMEOUT of both sockets",
	},
	{
		"rcvbuf",
		.scope = OPTION_RULE,
		SOCKBUF(options.sockopts.rcvbuf),
		.zero = "auto",
		.help = "SO_RCVBUF of both",
	},
	{
		"sndbuf",
		.scope = OPTION_RULE,
		SOCKBUF(options.sockopts.sndbuf),
		.zero = "auto",
		.help = "SO_SNDBUF of both",
	},
	{
		"notsent-lowat",
		.scope = OPTION_RULE,
		SOCKBUF(options.sockopts.notsent_lowat),
		.zero = "system",
		.help = "TCP_NOTSENT_LOWAT",
	},
	{
		"congestion",
		.scope = OPTION_RULE,
		TEXT(options.sockopts.congestion),
		.zero = "system",
		.help = "congestion control of both sockets",
	},
	{
		"mptcp",
		.scope = OPTION_RULE,
		FLAG(options.sockopts.mptcp),
		.help = "Multipath TCP, or TCP where it is refused",
	},
	{
		"freebind",
		.scope = OPTION_RULE,
		FLAG(options.sockopts.freebind),
		.help = "listen at addresses not assigned yet",
	},
	{
		"log-level",
		WORD(log_level, levels),
		.preset = LOG_WARN,
		.help = "messages on standard error",
	},
	{
		"stats",
		WORD(stats, formats),
		.bare = "text",
		.help = "print totals at the end and on SIGUSR1",
	},
	{
		"help",
		.letter = 'h',
		.help = "print the options",
	},
	{
		"version",
		.letter = 'V',
		.help = "print the version",
	},
};

const unsigned option_count = array_size(option_rows);

/* Fills in what holds without any option. */
void option_defaults(struct conf *conf)
{
	*conf = (struct conf){ 0 };
	for (unsigned i = 0; i < option_count; i++)
		option_preset(&option_rows[i], conf);
}

/**
 * option_find() - an option by its whole name
 * @scope:	OPTION_RULE finds only those that each rule may have
 *
 * Return: NULL if there is none.
 */
const struct option_row *option_find(const char *name, enum option_scope scope)
{
	for (unsigned i = 0; i < option_count; i++)
		if (!strcmp(name, option_rows[i].name) &&
		    option_rows[i].scope >= scope)
			return &option_rows[i];
	return NULL;
}

/* Letters to insert, delete or replace in @a to get @b, an option's name. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[OPTION_NAME_MAX + 1], len = (unsigned)strlen(b);

	for (unsigned i = 0; i <= len; i++)
		row[i] = i;
	for (; *a; a++) {
		unsigned corner = row[0]++;

		for (unsigned i = 1; i <= len; i++) {
			unsigned replace = corner + (*a != b[i - 1]);
			unsigned least =
				row[i - 1] < row[i] ? row[i - 1] : row[i];

			corner = row[i];
			row[i] = replace < least + 1 ? replace : least + 1;
		}
	}
	return row[len];
}

/* The option that @name is most like. Return: NULL if it is like none. */
const struct option_row *option_nearest(const char *name)
{
	const struct option_row *nearest = NULL;
	unsigned least = 1 + (unsigned)strlen(name) / 3;

	if (strlen(name) > 2 * OPTION_NAME_MAX)
		return NULL;
	for (unsigned i = 0; i < option_count; i++) {
		unsigned n = distance(name, option_rows[i].name);

		if (n <= least && (!nearest || n < least)) {
			nearest = &option_rows[i];
			least = n;
		}
	}
	return nearest;
}
