/* SPDX-License-Identifier: MIT */
/*
 * report.h - totals of all workers, printed.
 */
#ifndef DAEMON_REPORT_H
#define DAEMON_REPORT_H

#include "daemon/server.h"

/* Stdout takes a report within so long, or it is dropped. */
#define REPORT_WAIT_MS 1000

void report_print(const struct server *s, enum stats_format format);
bool report_check(void);
void report_flush(void);

#endif /* DAEMON_REPORT_H */
