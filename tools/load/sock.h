/* SPDX-License-Identifier: MIT */
/*
 * sock.h - addresses and sockets
 */
#ifndef LOAD_SOCK_H
#define LOAD_SOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "wire.h"

struct address {
	struct sockaddr_storage sa;
	socklen_t len;
};

/* Room for "[", 45 characters of IPv6 address, a scope, "]:65535". */
#define ADDRESS_TEXT 80

/* Reads "1.2.3.4:80" or "[::1]:80". Returns 0, or -EINVAL. */
int address_parse(struct address *a, const char *text);

/* Writes where a listening socket really listens. Returns 0 or -errno. */
int address_local(char text[ADDRESS_TEXT], int fd);

/* Returns a listening socket, not blocking, or a negative errno. */
int sock_listen(const struct address *a);

/*
 * Returns a socket, not blocking, that has begun to connect, or a negative
 * errno. It is writable once it is connected or has failed, and then
 * sock_hello() tells which.
 */
int sock_dial(const struct address *a);

/* Sends small messages at once. */
void sock_nodelay(int fd);

/*
 * Says hello on a new connection. @more: payload follows at once, and goes
 * into the same segment. Returns 0 or -errno, which may be why connecting
 * failed.
 */
int sock_hello(int fd, const struct hello *hello, bool more);

#endif
