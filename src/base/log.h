/* SPDX-License-Identifier: MIT */
/*
 * log.h - lines for people, on stderr.
 *
 * Any thread may log, and none waits for stderr: lines go into a bounded queue,
 * and a thread writes them. What the queue or stderr does not take is dropped
 * and counted.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdint.h>

enum log_level {
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG,
};

/**
 * struct ratelimit - keeps one kind of trouble from flooding the log
 *
 * All zero is open. Shared by all threads.
 */
struct ratelimit {
	uint64_t since_ns;
	unsigned passed, suppressed;
};

void log_set_level(enum log_level level);
enum log_level log_get_level(void);

void log_at(enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void log_ratelimited(struct ratelimit *limit, enum log_level level,
		     const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void log_notice(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

int log_start(void);
void log_flush(void);
uint64_t log_dropped(void);

#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

#endif /* BASE_LOG_H */
