/* SPDX-License-Identifier: MIT */
/*
 * report.h - totals of all workers, printed.
 */
#ifndef DAEMON_REPORT_H
#define DAEMON_REPORT_H

#include <stdio.h>

#include "daemon/server.h"

void report_print(FILE *out, const struct server *s, enum stats_format format);

#endif /* DAEMON_REPORT_H */
