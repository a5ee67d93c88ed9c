/* SPDX-License-Identifier: MIT */
/*
 * A TCP port forwarder on sluice.h alone, to read as an example.
 *
 *	forward splice|copy|auto LISTEN TARGET
 *	forward splice 127.0.0.1:8080 192.0.2.1:80
 *
 * The program accepts and connects; once both sockets are there, the library
 * has them. Its one descriptor is polled beside the program's own.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4(2) */
#endif

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sluice.h"

#define PENDING 256 /* connections to the target under way at a time */

enum { CONTEXT, LISTENER, FIRST }; /* in polled[] */

static struct pollfd polled[FIRST + PENDING];
static int clients[FIRST + PENDING]; /* for whom polled[i] is connecting */
static nfds_t n_polled = FIRST;
static struct addrinfo *target;
static struct sluice *sluice;

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno ? errno : EINVAL));
	exit(1);
}

/* "192.0.2.1:80" or "[2001:db8::1]:80", all in numbers. */
static struct addrinfo *address(const char *text)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *ai = NULL;
	char host[64], port[8], more;

	if ((sscanf(text, "[%63[0-9a-fA-F:.]]:%7[0-9]%c", host, port, &more) != 2 &&
	     sscanf(text, "%63[0-9.]:%7[0-9]%c", host, port, &more) != 2) ||
	    getaddrinfo(host, port, &hints, &ai))
		die(text);
	return ai;
}

/* Whoever is there must not take this for an end that was meant. */
static void drop(int fd)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

static void open_listener(const struct addrinfo *at)
{
	int one = 1;
	int fd = socket(at->ai_family,
			SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, SOMAXCONN))
		die("listen");
	polled[LISTENER] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

/* A client: begin to connect to the target for it. */
static void take_client(void)
{
	int client, server;

	client = accept4(polled[LISTENER].fd, NULL, NULL, SOCK_CLOEXEC);
	if (client < 0) {
		poll(NULL, 0, 10); /* out of descriptors: it can wait */
		return;
	}
	server = socket(target->ai_family,
			SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (connect(server, target->ai_addr, target->ai_addrlen) &&
	    errno != EINPROGRESS) {
		drop(server);
		drop(client);
		return;
	}
	clients[n_polled] = client;
	polled[n_polled++] = (struct pollfd){ .fd = server, .events = POLLOUT };
}

/* The connection of polled[i] is made, or has failed: over to the library. */
static void hand_over(nfds_t i)
{
	int client = clients[i], server = polled[i].fd, err = 0;
	socklen_t len = sizeof(err);

	polled[i] = polled[--n_polled];
	clients[i] = clients[n_polled];
	if (getsockopt(server, SOL_SOCKET, SO_ERROR, &err, &len) || err ||
	    sluice_relay(sluice, client, server, NULL, NULL)) {
		drop(server);
		drop(client);
	}
}

static void turn(void)
{
	struct sluice_result result = SLUICE_RESULT_INIT;

	polled[LISTENER].events = n_polled < FIRST + PENDING ? POLLIN : 0;
	if (poll(polled, n_polled, -1) < 0 && errno != EINTR)
		die("poll");
	if (polled[CONTEXT].revents)
		sluice_dispatch(sluice, 0);
	while (sluice_pop(sluice, &result) > 0)
		; /* a program of some size would log it */
	for (nfds_t i = n_polled; i-- > FIRST;)
		if (polled[i].revents)
			hand_over(i);
	if (polled[LISTENER].revents)
		take_client();
}

int main(int argc, char **argv)
{
	static const char *const modes[] = { "splice", "copy", "auto" };
	struct sluice_options options = SLUICE_OPTIONS_INIT;

	if (argc != 4)
		die("usage: forward splice|copy|auto LISTEN TARGET");
	while (options.mode < 3 && strcmp(argv[1], modes[options.mode]))
		options.mode++;
	signal(SIGPIPE, SIG_IGN);
	errno = -sluice_new(&sluice, &options);
	if (errno)
		die(argv[1]);
	polled[CONTEXT] = (struct pollfd){ sluice_fd(sluice), POLLIN, 0 };
	target = address(argv[3]);
	open_listener(address(argv[2]));
	for (;;)
		turn();
}
