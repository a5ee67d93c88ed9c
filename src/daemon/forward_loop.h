/* SPDX-License-Identifier: MIT */
/*
 * circle.h - rules that lead back to themselves.
 */
#ifndef DAEMON_FORWARD_LOOP_H
#define DAEMON_FORWARD_LOOP_H

#include "daemon/server.h"

bool forward_loop_find(const struct server *s);

#endif /* DAEMON_FORWARD_LOOP_H */
