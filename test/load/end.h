/* SPDX-License-Identifier: MIT */
/*
 * end.h - one end of a connection: does its part, and notes what it hears
 *
 * The client first says who it is, in HELLO bytes, so that the other end knows
 * whose it is. All that follows is stamped with the connection and the place.
 */
#ifndef LOAD_END_H
#define LOAD_END_H

#include "load/plan.h"

#define HELLO 8

enum heard {
	HEARD_NOTHING,
	HEARD_FIN,
	HEARD_RST,
};

/* How it has left. */
enum gone {
	GONE_NOT,
	GONE_CLEAN, /* it had said FIN, and heard the other's end */
	GONE_EARLY, /* by close(2) before that: FIN, or RST */
	GONE_RESET,
	GONE_TOLD, /* because it had heard RST */
};

struct pair;

/**
 * struct end - one end
 * @which:	0: it has connected; 1: it was accepted
 * @pair:	NULL for one that was accepted and has not heard who it is
 * @hello:	bytes of the hello that were said, or heard
 * @sent, @got:	bytes behind it
 * @readable, @writable: until EAGAIN
 * @failed:	a write has failed: so the RST was told, and will not be again
 * @until_ms:	stalls until then, 0 if it does not
 * @mark_seen:	the other's urgent byte was seen as urgent, in its place
 * @wrong:	what was wrong with what it heard, or NULL
 * @queued:	in the queue of those that have something to do
 */
struct end {
	int fd, which;
	struct pair *pair;
	unsigned hello;
	uint8_t hello_data[HELLO];
	uint64_t sent, got;
	bool connecting, readable, writable, said_fin, failed, stalled;
	uint64_t until_ms;
	enum heard heard;
	enum gone gone;
	bool mark_seen, mark_missed;
	char *wrong;
	bool queued;
	struct end *next;
};

/* What all ends share. */
struct load {
	enum sort sort;
	uint64_t size, seed, now_ms;
	bool held; /* nobody says anything yet but the hello */
	uint64_t urgent_sent, urgent_seen, urgent_missed;
};

extern struct load load;

/* Goes on as far as it can now. Return: whether it would like to go on. */
bool end_run(struct end *e);

/* Leaves. */
void end_leave(struct end *e, enum gone how);

#endif
