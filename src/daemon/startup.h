/* SPDX-License-Identifier: MIT */
/*
 * startup.h - the lines that say what was started.
 */
#ifndef DAEMON_STARTUP_H
#define DAEMON_STARTUP_H

#include <sys/resource.h>

#include "daemon/listen_set.h"

rlim_t startup_raise_descriptors(void);
void startup_log(const struct conf *conf, const struct listen_set *listens,
		 const struct workers *workers, rlim_t descriptors);

#endif /* DAEMON_STARTUP_H */
