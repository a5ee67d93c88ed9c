/* SPDX-License-Identifier: MIT */
/*
 * doubt.h - sockets that seem to be empty, without a proof.
 */
#ifndef NET_DOUBT_H
#define NET_DOUBT_H

#include "base/counter.h"
#include "base/list.h"

struct watch;

/**
 * struct doubts - the watches of one loop that are in doubt
 * @watches:	by watch.doubt
 * @raised:	times that one was put in doubt
 * @asked:	times that poll(2) was asked about one: others were settled by
 *		an edge before that
 * @wrong:	of those: there was something to read after all
 */
struct doubts {
	struct list watches;
	counter raised, asked, wrong;
};

static inline void doubts_init(struct doubts *ds)
{
	list_init(&ds->watches);
}

static inline bool doubts_any(const struct doubts *ds)
{
	return !list_empty(&ds->watches);
}

/* Whether there is more than one. */
static inline bool doubts_many(const struct doubts *ds)
{
	return ds->watches.next != ds->watches.prev;
}

void doubt_raise(struct doubts *ds, struct watch *w);
void doubt_settle(struct watch *w);
bool doubts_ask(struct doubts *ds);

#endif /* NET_DOUBT_H */
