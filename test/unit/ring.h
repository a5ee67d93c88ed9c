/* SPDX-License-Identifier: MIT */
/*
 * A rig with a ring, for tests that compile src/relay/uring/ in, to look inside:
 * they include that first.
 */
#ifndef UNIT_RING_H
#define UNIT_RING_H

#include "unit/rig.h"

static inline void ring_open(struct rig *g)
{
	rig_open(g, RELAY_URING);
}

static inline struct uring *ring_of(struct rig *g)
{
	return container_of(g->env.engine, struct uring, engine);
}

static inline struct uring_lane *ring_lane(struct wire *w, int i)
{
	ck_assert_ptr_nonnull(w->relay.lane[i].own);
	return to_uring(w->relay.lane[i].own);
}

/* One message each way. */
static inline void ring_pass(struct rig *g, struct wire *w, uint64_t at, size_t n)
{
	for (unsigned i = 0; i < 2; i++) {
		say(w->peer[i], i, at, n);
		await_acked(w->peer[i]);
		rig_settle(g);
		hear(w->peer[!i], i, at, n);
	}
}

static inline void ring_lay(struct rig *g, struct wire *w)
{
	wire_lay(g, w);
	ring_pass(g, w, 0, 100);
	for (int i = 0; i < 2; i++)
		ring_lane(w, i);
}

/* As if the sink of lane @i were full; no edge tells that it is not. */
static inline void ring_shut_sink(struct wire *w, int i)
{
	w->relay.side[!i].watch.ready &= ~(uint32_t)LOOP_WRITABLE;
}

static inline void ring_open_sink(struct wire *w, int i)
{
	w->relay.side[!i].watch.ready |= LOOP_WRITABLE;
	loop_soon(&w->rig->loop, &w->relay.job);
}

/* Has lane @i hold the @n bytes at @at, which its sink does not take yet. */
static inline void ring_hold(struct rig *g, struct wire *w, int i, uint64_t at,
			     size_t n)
{
	ring_shut_sink(w, i);
	say(w->peer[i], (unsigned)i, at, n);
	await_acked(w->peer[i]);
	rig_settle(g);
	ck_assert_uint_eq(lane_holds(&w->relay.lane[i]), n);
}

/* Leaves room for @room requests in the queue. */
static inline void ring_crowd(struct rig *g, unsigned room)
{
	struct io_uring *ring = &ring_of(g)->ring;

	while (io_uring_sq_space_left(ring) > room) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

		ck_assert_ptr_nonnull(sqe);
		io_uring_prep_nop(sqe);
		io_uring_sqe_set_data64(sqe, 0);
	}
}

#endif /* UNIT_RING_H */
