/* SPDX-License-Identifier: MIT */
/*
 * A rig with a ring, for tests that compile uring.c and uring_ride.c in, to look
 * inside: they include those first.
 */
#ifndef UNIT_RING_H
#define UNIT_RING_H

#include "unit/rig.h"

static inline void ring_open(struct rig *g, int multishot)
{
	rig_open(g, RELAY_COPY);
	g->env.mode = RELAY_URING;
	ck_assert_int_eq(uring_open(&g->env, multishot), 0);
}

/* One message each way: after the first, a multishot receive waits for more. */
static inline void ring_pass(struct rig *g, struct wire *w, uint64_t at, size_t n)
{
	for (unsigned i = 0; i < 2; i++) {
		say(w->peer[i], i, at, n);
		await_acked(w->peer[i]);
		rig_settle(g);
		hear(w->peer[!i], i, at, n);
	}
}

static inline void ring_lay(struct rig *g, struct wire *w, int multishot)
{
	wire_lay(g, w);
	ring_pass(g, w, 0, 100);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(w->relay.lane[i].ride->waiting, multishot);
}

/* As if the sink of lane 0 were full; nothing happens to it that would tell. */
static inline void ring_shut_sink(struct wire *w)
{
	w->relay.side[1].watch.ready &= ~(uint32_t)LOOP_WRITABLE;
}

static inline void ring_open_sink(struct rig *g, struct wire *w)
{
	w->relay.side[1].watch.ready |= LOOP_WRITABLE;
	loop_soon(&g->loop, &w->relay.job);
}

#endif /* UNIT_RING_H */
