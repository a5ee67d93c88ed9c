/* SPDX-License-Identifier: MIT */
/*
 * quiet.c - ends relays that have fallen silent
 *
 * A timer looks a few times within the limit whether any byte has moved since
 * it last looked, so that moving bytes costs nothing. A relay ends after the
 * limit, or up to one part of it later.
 */
#include "base/util.h"
#include "net/sock.h"
#include "relay/lane.h"

/* Looks within a limit. */
#define IDLE_PARTS 8

/* Grows with what is read, delivered, and acknowledged by the peer's kernel. */
static uint64_t moved(const struct relay *r)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < 2; i++) {
		int unsent = sock_outq(r->side[!i].watch.fd);

		n += r->lane[i].read + 2 * r->lane[i].delivered;
		n -= unsent > 0 ? (uint64_t)unsent : 0;
	}
	return n;
}

static bool is_half_closed(const struct relay *r)
{
	return (r->lane[0].state == LANE_SHUT) != (r->lane[1].state == LANE_SHUT);
}

/* Whether it is half_close_ms that counts, not idle_ms. */
static bool half_counts(const struct relay *r)
{
	unsigned ms = r->env->idle_ms, half = r->env->half_close_ms;

	return is_half_closed(r) && half && (!ms || half < ms);
}

static uint64_t part_ns(const struct relay *r)
{
	unsigned ms = half_counts(r) ? r->env->half_close_ms : r->env->idle_ms;

	return ms * NS_PER_MS / IDLE_PARTS;
}

static void idle_check(struct timer *t);

/* Without memory for a deadline: asked for again when that may have passed. */
static void idle_arm(struct relay *r)
{
	r->idle_unarmed = loop_timer(r->env->loop, &r->idle,
				     now_ns() + part_ns(r), idle_check) != 0;
	r->starved |= r->idle_unarmed;
}

static void idle_check(struct timer *t)
{
	struct relay *r = container_of(t, struct relay, idle);
	uint64_t now_moved = moved(r);

	if (now_moved != r->idle_moved)
		r->idle_checks = 0;
	r->idle_moved = now_moved;
	if (++r->idle_checks <= IDLE_PARTS) {
		idle_arm(r);
		if (!r->idle_unarmed)
			return;
	} else if (!r->stop) {
		r->stop = half_counts(r) ? RELAY_HALF_CLOSED : RELAY_IDLE;
	}
	loop_soon(r->env->loop, &r->job);
}

/* Begins to look, or begins anew: at the start, when a FIN has gone by, and
 * where there was no memory to begin. */
void idle_start(struct relay *r)
{
	if (!part_ns(r))
		return;
	r->idle_moved = moved(r);
	r->idle_checks = 1;
	idle_arm(r);
}
