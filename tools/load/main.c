/* SPDX-License-Identifier: MIT */
/*
 * main.c - sluice-load: traffic for a TCP forwarder, and the check of it
 *
 *	args	the command line
 *	serve	the other end, for all of:
 *	bulk	as many bytes as possible, in one direction
 *	rr	request and response, on connections that stay or that do not,
 *		or once on connections that are then idle
 *
 *	client	the loop of bulk and rr
 *	stream	moving payload		wire	what goes before and after it
 *	stamp	bytes that know where they belong
 *	sock	addresses and sockets	histo	how long things took
 *
 * Nothing here is shared with what it tests, on purpose.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "args.h"
#include "load.h"

void complain(const char *format, ...)
{
	char line[400];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	/* One call, and so one write(2): others may write to the same file. */
	fprintf(stderr, "sluice-load: %s\n", line);
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int wait_ms(uint64_t until_ns)
{
	uint64_t now = now_ns(), ms;

	if (until_ns <= now)
		return 0;
	ms = (until_ns - now + 999999) / 1000000;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* As many descriptors as we may have, for as many connections. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	enum command command;
	struct options o;

	if (args_read(&command, &o, argc, argv) < 0)
		return 2;
	raise_limit();
	switch (command) {
	case SERVE:
		return serve_run(&o);
	case BULK:
		return bulk_run(&o);
	case HOLD:
		return rr_hold(&o);
	case RR:
		return rr_run(&o, false);
	case CRR:
		return rr_run(&o, true);
	default:
		args_help();
		return 0;
	}
}
