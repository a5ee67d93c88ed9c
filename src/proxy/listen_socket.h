/* SPDX-License-Identifier: MIT */
/*
 * listen_socket.h - a socket that listens; it outlives the workers.
 */
#ifndef PROXY_LISTEN_SOCKET_H
#define PROXY_LISTEN_SOCKET_H

#include <net/if.h>

#include "net/addr.h"
#include "proxy/route.h"

/* What could not be set, beside enum sock_lack: keepalive. */
#define LISTEN_LACKS_KEEPALIVE 8

/**
 * struct listen_socket - where a route listens
 * @fd:		its number stays when another socket takes its place
 * @at:		its address, with the port that the kernel chose for port 0
 * @lacks:	of enum sock_lack and LISTEN_LACKS_KEEPALIVE
 * @device:	the interface of a link-local address, else ""; an interface that
 *		was created again has another index
 * @route:	of the clients; a reference
 *
 * While an acceptor watches it, only that one's thread may change it.
 */
struct listen_socket {
	int fd;
	struct addr at;
	unsigned lacks;
	char device[IF_NAMESIZE];
	struct route *route;
};

int listen_socket_open(struct listen_socket *l, struct route *route,
		       const struct addr *at);
void listen_socket_close(struct listen_socket *l);
int listen_socket_reopen(struct listen_socket *l);
bool listen_socket_is_stale(const struct listen_socket *l);

#endif /* PROXY_LISTEN_SOCKET_H */
