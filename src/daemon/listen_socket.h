/* SPDX-License-Identifier: MIT */
/*
 * listening.h - the sockets that listen, before a worker watches them.
 */
#ifndef DAEMON_LISTEN_SOCKET_H
#define DAEMON_LISTEN_SOCKET_H

#include "daemon/server.h"

int listen_sockets_open(struct server *s);
void listen_sockets_close(struct server *s);
int listen_socket_reopen(const struct server *s, struct listen_socket *l);
bool listen_socket_is_stale(const struct listen_socket *l);

#endif /* DAEMON_LISTEN_SOCKET_H */
