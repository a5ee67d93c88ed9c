/* SPDX-License-Identifier: MIT */
/*
 * load.h - what the subcommands share
 */
#ifndef LOAD_LOAD_H
#define LOAD_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sock.h"

struct options {
	const char *where;	/* LISTEN or TARGET, as it was given */
	struct address address; /* the same, read */
	unsigned connections;	/* -P, -N, -K */
	size_t size;		/* --size, bytes */
	unsigned pipeline;	/* --pipeline, requests */
	uint64_t bytes;		/* --bytes or --source; 0: none */
	uint64_t count;		/* --count; 0: none */
	uint64_t time_ns;	/* --seconds; 0: none */
	uint64_t timeout_ns;	/* --timeout, for everything */
	enum hello_kind raw;	/* serve without a hello, 0: with one */
	bool reverse, check, unread;
};

/*
 * The subcommands. Each returns the exit status: 0, or 1 after an error or a
 * wrong byte, and then it has said what happened on stderr.
 */
int serve_run(const struct options *o);
int bulk_run(const struct options *o);
int rr_run(const struct options *o, bool reconnect);
int rr_hold(const struct options *o);

/* Says one line on stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The monotonic clock. */
uint64_t now_ns(void);

/* Milliseconds to wait for a moment, rounded up; 0 if it has passed. */
int wait_ms(uint64_t until_ns);

#endif
