/* SPDX-License-Identifier: MIT */
/*
 * report.h - totals of all workers, printed.
 */
#ifndef DAEMON_REPORT_H
#define DAEMON_REPORT_H

#include "daemon/server.h"

void report_print(const struct server *s, enum stats_format format, int wait_ms);

#endif /* DAEMON_REPORT_H */
