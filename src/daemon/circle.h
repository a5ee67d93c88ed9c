/* SPDX-License-Identifier: MIT */
/*
 * circle.h - rules that lead back to themselves.
 */
#ifndef DAEMON_CIRCLE_H
#define DAEMON_CIRCLE_H

#include "daemon/server.h"

bool circle_is_found(const struct server *s);

#endif /* DAEMON_CIRCLE_H */
