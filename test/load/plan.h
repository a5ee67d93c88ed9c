/* SPDX-License-Identifier: MIT */
/*
 * plan.h - what the two ends of one connection are going to do
 *
 * A plan follows from a seed and the connection's number alone, so that both
 * ends know it, and a run can be repeated.
 */
#ifndef LOAD_PLAN_H
#define LOAD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define NEVER UINT64_MAX

enum kind {
	KIND_BULK,     /* both say all they have, as fast as it is taken */
	KIND_PINGPONG, /* a message each, in turn */
	KIND_ANSWER,   /* the server says nothing before the client's FIN */
	KIND_SPEECH,   /* the client says nothing before the server's FIN */
	KIND_SILENT,   /* the client leaves at once, without a word */
	KINDS
};

/* How an end leaves, when it has said what it had to say. */
enum leave {
	LEAVE_FIN,   /* FIN; then it hears the other to its end */
	LEAVE_CLOSE, /* close(2), whatever there is to be read */
	LEAVE_RESET, /* the same with a RST */
};

/**
 * struct part - one end's part of a plan
 * @total:	bytes that it says
 * @leave_at:	or fewer: it leaves after so many
 * @stall_at:	bytes after which it does not read for @stall_ms
 * @urgent_at:	position of an urgent byte, NEVER if there is none
 */
struct part {
	uint64_t total, leave_at;
	enum leave leave;
	uint64_t stall_at;
	unsigned stall_ms;
	uint64_t urgent_at;
};

struct plan {
	enum kind kind;
	unsigned message; /* bytes, of ping and pong */
	struct part part[2];
};

/* What kind of connections there are. */
enum sort {
	SORT_EVEN,  /* bulk of the same size both ways, and FINs */
	SORT_SHORT, /* little to say, and any end */
	SORT_MIXED, /* everything */
};

void plan_make(struct plan *p, enum sort sort, uint64_t size, uint64_t seed,
	       uint32_t serial);

/* Whether both ends are going to say all and hear all. */
bool plan_is_orderly(const struct plan *p);

extern const char *const kind_names[KINDS];
extern const char *const leave_names[];

#endif
