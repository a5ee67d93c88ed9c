/* SPDX-License-Identifier: MIT */
/*
 * sock.c - addresses and sockets.
 */
#include "sock.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 4096

/* Numbers only: a test must not depend on a resolver. */
int address_parse(struct address *a, const char *text)
{
	static const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	const char *colon = strrchr(text, ':');
	char host[ADDRESS_TEXT];
	struct addrinfo *info;
	size_t len;
	bool v6;

	if (!colon || colon == text || !colon[1])
		return -EINVAL;
	/* getaddrinfo() takes 65536 for 0. */
	if (strlen(colon + 1) > 5 || atoi(colon + 1) > UINT16_MAX ||
	    colon[1 + strspn(colon + 1, "0123456789")])
		return -EINVAL;
	v6 = text[0] == '[' && colon[-1] == ']';
	len = colon - text - 2 * v6;
	if (len >= sizeof(host) || (!v6 && memchr(text, ':', len)))
		return -EINVAL;
	memcpy(host, text + v6, len);
	host[len] = 0;
	if (v6 != !!strchr(host, ':') ||
	    getaddrinfo(host, colon + 1, &hints, &info))
		return -EINVAL;

	memcpy(&a->sa, info->ai_addr, info->ai_addrlen);
	a->len = info->ai_addrlen;
	freeaddrinfo(info);
	return 0;
}

int address_local(char text[ADDRESS_TEXT], int fd)
{
	struct address a = { .len = sizeof(a.sa) };
	char host[64], port[8];

	if (getsockname(fd, (struct sockaddr *)&a.sa, &a.len) < 0)
		return -errno;
	if (getnameinfo((struct sockaddr *)&a.sa, a.len, host, sizeof(host),
			port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		return -EINVAL;
	if (a.sa.ss_family == AF_INET6)
		snprintf(text, ADDRESS_TEXT, "[%s]:%s", host, port);
	else
		snprintf(text, ADDRESS_TEXT, "%s:%s", host, port);
	return 0;
}

static int sock_new(const struct address *a)
{
	int fd = socket(a->sa.ss_family,
			SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int sock_listen(const struct address *a)
{
	int fd = sock_new(a), one = 1, err;

	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&a->sa, a->len) < 0 ||
	    listen(fd, BACKLOG) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int sock_dial(const struct address *a)
{
	int fd = sock_new(a), err;

	if (fd < 0)
		return fd;
	sock_nodelay(fd);
	if (connect(fd, (const struct sockaddr *)&a->sa, a->len) < 0 &&
	    errno != EINPROGRESS) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

void sock_nodelay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

int sock_hello(int fd, const struct hello *hello, bool more)
{
	ssize_t n = send(fd, hello, sizeof(*hello),
			 MSG_NOSIGNAL | (more ? MSG_MORE : 0));

	if (n < 0)
		return -errno;
	/* The first 16 bytes always fit into the buffer of a new socket. */
	return n == sizeof(*hello) ? 0 : -EIO;
}
