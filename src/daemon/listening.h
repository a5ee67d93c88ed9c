/* SPDX-License-Identifier: MIT */
/*
 * listening.h - the sockets that listen, before a worker watches them.
 */
#ifndef DAEMON_LISTENING_H
#define DAEMON_LISTENING_H

#include "daemon/server.h"

int listening_open(struct server *s);
void listening_close(struct server *s);

#endif /* DAEMON_LISTENING_H */
