/* SPDX-License-Identifier: MIT */
/*
 * client.h - the loop of the subcommands that connect
 *
 * Bounded in time: the run ends when all connections have ended, when the
 * deadline has passed, or with the first failure, of which there is then one
 * line on stderr.
 */
#ifndef LOAD_CLIENT_H
#define LOAD_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "load.h"

struct client {
	const struct options *o;
	/* An event on a connection; @conn is what client_dial() was given. */
	void (*step)(struct client *c, void *conn);
	/* It is time to come to an end; may be NULL. */
	void (*stop)(struct client *c);

	int epfd;
	unsigned open;	      /* connections */
	uint64_t stop_ns;     /* when to stop; 0: not by the clock */
	uint64_t deadline_ns; /* when to give up */
	bool stopped;	      /* @stop_ns has passed */
	bool failed;
};

/* Sets up; @step and @stop are filled in by the caller. Returns 0 or -errno. */
int client_init(struct client *c, const struct options *o);
void client_fini(struct client *c);

/*
 * Begins a connection whose events (of EPOLLIN, EPOLLOUT, EPOLLET) go to @conn.
 * Returns its descriptor, or -1 and the client has failed.
 */
int client_dial(struct client *c, uint32_t events, void *conn);

/* Changes the events of a connection. */
void client_watch(struct client *c, int fd, uint32_t events, void *conn);

/* Closes a connection. */
void client_hangup(struct client *c, int fd);

/*
 * Ends the run: @what was done on @stream when @err came, a negative errno, or
 * 0 for a FIN that was not due.
 */
void client_fail(struct client *c, unsigned stream, const char *what, int err);

/* Runs until the end. Returns 0, or -1 if it failed. */
int client_run(struct client *c);

#endif
