/* SPDX-License-Identifier: MIT */
/*
 * Threads that send, or receive and check, stamped bytes at a pace.
 *
 *	struct pacer up = { .fd = c[0], .stream = 1, .size = 5000000 };
 *	struct pacer down = { .fd = b[1], .stream = 1, .size = 5000000,
 *			      .chunk = 7000, .pause_us = 500, .end = 1 };
 *
 *	pacer_start_recv(&down);
 *	pacer_start_send(&up);
 *	... what is tested ...
 *	pacer_join(&up);
 *	pacer_join(&down);
 *
 * A pacer never closes its descriptor. Sending and receiving on one descriptor
 * at the same time takes two pacers.
 */
#ifndef SUPPORT_PACER_H
#define SUPPORT_PACER_H

#include <pthread.h>
#include <stdint.h>

#include "support/stamp.h"

struct pacer {
	/* set before the start */
	int fd;
	unsigned stream; /* whose bytes, see stamp.h */
	uint64_t offset; /* where in the stream to begin */
	uint64_t size;	 /* bytes to send, or to expect */
	size_t chunk;	 /* at most so many bytes a call; 0: 64 KiB */
	int pause_us;	 /* slept after each call */
	int delay_ms;	 /* slept before the first */
	int end;	/* sender: shut down at the end; receiver: expect EOF */
	int timeout_ms; /* longest wait for one chunk; 0: 10 s */

	/* for all to read after pacer_wait() or pacer_join() */
	uint64_t done;	     /* bytes sent, or received and right */
	int error;	     /* 0 or a negative errno; -EBADMSG: a wrong byte */
	char why[STAMP_WHY]; /* what went wrong, in words */

	pthread_t thread;
};

void pacer_start_send(struct pacer *p);
void pacer_start_recv(struct pacer *p);

/* Waits for the end of the thread; returns @p->error. */
int pacer_wait(struct pacer *p);

/* The same, and fails the test with @p->why on an error. */
void pacer_join(struct pacer *p);

#endif
