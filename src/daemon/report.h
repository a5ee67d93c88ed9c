/* SPDX-License-Identifier: MIT */
/*
 * report.h - prints the statistics.
 */
#ifndef DAEMON_REPORT_H
#define DAEMON_REPORT_H

#include "proxy/snapshot.h"

/* A report that stdout does not take within this time is dropped. */
#define REPORT_WAIT_MS 1000

/**
 * struct report - what is printed
 * @mode:	of the command line
 * @seconds:	since the start
 * @snapshot:	of all workers
 */
struct report {
	enum relay_mode mode;
	unsigned workers;
	double seconds;
	struct snapshot snapshot;
};

void report_print(const struct report *r, enum stats_format format);
bool report_check(void);
void report_flush(void);

#endif /* DAEMON_REPORT_H */
