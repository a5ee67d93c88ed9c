/* SPDX-License-Identifier: MIT */
/*
 * announce.h - what is said when the program is ready, and when it ends.
 */
#ifndef DAEMON_STARTUP_H
#define DAEMON_STARTUP_H

#include <sys/resource.h>

#include "daemon/server.h"

void startup_report(const struct server *s, rlim_t descriptors);
void startup_report_end(const struct server *s);

#endif /* DAEMON_STARTUP_H */
