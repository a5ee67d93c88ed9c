/* SPDX-License-Identifier: MIT */
/*
 * quiet.c - ends relays that have fallen silent
 *
 * A timer looks a few times within the limit whether any byte has moved since
 * it last looked, so that moving bytes costs nothing. A relay ends after the
 * limit, or up to one part of it later.
 */
#include "base/util.h"
#include "relay/lane.h"

/* Looks within a limit. */
#define QUIET_PARTS 8

static uint64_t moved(const struct relay *r)
{
	return r->lane[0].read + r->lane[0].delivered + r->lane[1].read +
	       r->lane[1].delivered;
}

static bool is_half_closed(const struct relay *r)
{
	return (r->lane[0].state == LANE_SHUT) != (r->lane[1].state == LANE_SHUT);
}

static uint64_t part_ns(const struct relay *r)
{
	unsigned ms = r->env->idle_ms, half = r->env->half_close_ms;

	if (is_half_closed(r) && half && (!ms || half < ms))
		ms = half;
	return ms * NS_PER_MS / QUIET_PARTS;
}

static void quiet_look(struct timer *t)
{
	struct relay *r = container_of(t, struct relay, quiet);
	uint64_t now_moved = moved(r);

	if (now_moved != r->quiet_moved)
		r->quiet_looks = 0;
	r->quiet_moved = now_moved;
	if (++r->quiet_looks <= QUIET_PARTS) {
		(void)loop_timer(r->env->loop, t, now_ns() + part_ns(r),
				 quiet_look);
		return;
	}
	r->stop = is_half_closed(r) ? RELAY_HALF_CLOSED : RELAY_IDLE;
	loop_soon(r->env->loop, &r->job);
}

/* Begins to look, or begins anew: at the start, and when a FIN has gone by. */
void quiet_begin(struct relay *r)
{
	uint64_t part = part_ns(r);

	r->quiet_moved = moved(r);
	r->quiet_looks = 1;
	if (part)
		(void)loop_timer(r->env->loop, &r->quiet, now_ns() + part,
				 quiet_look);
}
