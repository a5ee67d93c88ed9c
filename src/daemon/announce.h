/* SPDX-License-Identifier: MIT */
/*
 * announce.h - what is said when the program is ready, and when it ends.
 */
#ifndef DAEMON_ANNOUNCE_H
#define DAEMON_ANNOUNCE_H

#include <sys/resource.h>

#include "daemon/server.h"

void announce_ready(const struct server *s, rlim_t descriptors);
void announce_end(const struct server *s);

#endif /* DAEMON_ANNOUNCE_H */
