/* SPDX-License-Identifier: MIT */
/*
 * log.c - lines for people, on stderr
 *
 * A line is made by the thread that logs, and written by another: see output.c.
 */
#include "base/log.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/output.h"
#include "base/util.h"

#define LINE_MAX_LEN 1024

/* Bytes of lines that wait to be written. */
#define QUEUE_BYTES (256 << 10)

/* At the end: how long to wait for stderr while it takes nothing, and in all. */
#define FLUSH_QUIET_MS 500
#define FLUSH_TOTAL_MS 1000

/* A gate lets so many lines through in so much time. */
#define RATELIMIT_LINES 5
#define RATELIMIT_NS	(10 * NS_PER_SEC)

static _Atomic int level_now = LOG_WARN;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for gates */
static char queue[QUEUE_BYTES];
static struct output to_stderr =
	OUTPUT_INIT(STDERR_FILENO, "sluice-stderr", "messages", queue);

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&level_now, (int)level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
	return (enum log_level)atomic_load_explicit(&level_now,
						    memory_order_relaxed);
}

/* What an argument or a file brought in must not look like another line. */
static void sanitize(char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (iscntrl((unsigned char)line[i]))
			line[i] = '?';
}

static void put(const char *before, unsigned suppressed, const char *fmt,
		va_list args) __attribute__((format(printf, 3, 0)));

static void put(const char *before, unsigned suppressed, const char *fmt,
		va_list args)
{
	char line[LINE_MAX_LEN];
	size_t n, room = sizeof(line) - 1; /* the newline is never cut off */

	n = (size_t)snprintf(line, room, "sluice: %s", before);
	n += (size_t)vsnprintf(line + n, room - n, fmt, args);
	if (suppressed && n < room)
		n += (size_t)snprintf(line + n, room - n,
				      " (and %u more like it)", suppressed);
	if (n >= room)
		n = room - 1;
	sanitize(line, n);
	line[n++] = '\n';

	(void)output_put(&to_stderr, line, n); /* counts what it drops */
}

static const char *prefix(enum log_level level)
{
	return level == LOG_ERROR  ? "error: "
	       : level == LOG_WARN ? "warning: "
				   : "";
}

void log_at(enum log_level level, const char *fmt, ...)
{
	va_list args;

	if (level > log_get_level())
		return;
	va_start(args, fmt);
	put(prefix(level), 0, fmt, args);
	va_end(args);
}

/* What every operator wants to see once: starting, stopping. */
void log_notice(const char *fmt, ...)
{
	va_list args;

	if (log_get_level() < LOG_WARN)
		return;
	va_start(args, fmt);
	put("", 0, fmt, args);
	va_end(args);
}

/* Return: whether a line may pass, and how many were held back before it. */
static bool ratelimit_pass(struct ratelimit *limit, unsigned *suppressed)
{
	uint64_t now = now_ns();
	bool pass;

	pthread_mutex_lock(&lock);
	if (now - limit->since_ns > RATELIMIT_NS) {
		limit->since_ns = now;
		limit->passed = 0;
	}
	pass = limit->passed < RATELIMIT_LINES;
	if (pass) {
		limit->passed++;
		*suppressed = limit->suppressed;
		limit->suppressed = 0;
	} else {
		limit->suppressed++;
	}
	pthread_mutex_unlock(&lock);
	return pass;
}

/**
 * log_ratelimited() - log what may happen thousands of times a second
 *
 * A few lines in ten seconds pass; the next one that does tells how many did
 * not.
 */
void log_ratelimited(struct ratelimit *limit, enum log_level level,
		     const char *fmt, ...)
{
	unsigned suppressed;
	va_list args;

	if (level > log_get_level() || !ratelimit_pass(limit, &suppressed))
		return;
	va_start(args, fmt);
	put(prefix(level), suppressed, fmt, args);
	va_end(args);
}

/**
 * log_start() - make the thread that writes the lines
 *
 * The first line would do the same. Return: 0 or a negative errno; then lines
 * wait for a thread.
 */
int log_start(void)
{
	return output_start(&to_stderr);
}

/* Waits until all lines are written, but not for long if stderr takes none. */
void log_flush(void)
{
	(void)output_flush(&to_stderr, FLUSH_QUIET_MS, FLUSH_TOTAL_MS);
}

/* How many lines were dropped. */
uint64_t log_dropped(void)
{
	return output_dropped(&to_stderr);
}
