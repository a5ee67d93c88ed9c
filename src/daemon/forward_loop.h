/* SPDX-License-Identifier: MIT */
/*
 * forward_loop.h - rules that forward to themselves.
 */
#ifndef DAEMON_FORWARD_LOOP_H
#define DAEMON_FORWARD_LOOP_H

#include "daemon/listen_set.h"

bool forward_loop_find(const struct routes *routes,
		       const struct listen_set *listens);

#endif /* DAEMON_FORWARD_LOOP_H */
