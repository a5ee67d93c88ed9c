/* SPDX-License-Identifier: MIT */
/*
 * pair.h - a connection: its two ends, and whether it went as it must
 */
#ifndef LOAD_PAIR_H
#define LOAD_PAIR_H

#include <stddef.h>

#include "load/end.h"

#define SLOTS 32768 /* connections at a time; two streams each */

/**
 * struct pair - a connection
 * @ends:	[1] is NULL until the hello has come
 * @left_ms:	when the client left, 0 if it has not
 */
struct pair {
	uint32_t serial;
	struct plan plan;
	struct end *ends[2];
	uint64_t born_ms, left_ms;
};

/* The stream that end @which says. */
static inline unsigned pair_stream(const struct pair *p, int which)
{
	return p->serial % SLOTS * 2 + (unsigned)which;
}

/* What is wrong with a connection that is over, in @why; NULL: nothing. */
const char *pair_judge(const struct pair *p, char *why, size_t room);

/* What it was and how far it has come, for people. */
void pair_describe(const struct pair *p, char *text, size_t room);

#endif
