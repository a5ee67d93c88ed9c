/* SPDX-License-Identifier: MIT */
/*
 * listening.h - the sockets that listen, before a worker watches them.
 */
#ifndef DAEMON_LISTENING_H
#define DAEMON_LISTENING_H

#include "daemon/server.h"

int listening_open(struct server *s);
void listening_close(struct server *s);
int listening_reopen(const struct server *s, struct listening *l);
bool listening_is_stale(const struct listening *l);

#endif /* DAEMON_LISTENING_H */
