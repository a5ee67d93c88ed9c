/* SPDX-License-Identifier: MIT */
/*
 * lane.h - one direction of a relay, as the pump drives it.
 */
#ifndef RELAY_LANE_H
#define RELAY_LANE_H

#include "relay/relay.h"

/* Bytes that were read and not yet delivered. */
static inline size_t lane_held(const struct lane *l)
{
	return (l->conduit ? l->conduit->held : 0) + l->urgent;
}

bool lane_run(struct relay *r, unsigned i);
void lane_drop(struct relay *r, struct lane *l, enum relay_drop why);

/* choose.c */
void choose_learn(struct relay *r, struct lane *l, size_t n);

/* quiet.c */
void idle_start(struct relay *r);

/* pump.c */
void pump_starved(struct relay *r);

void side_gone(struct relay *r, unsigned i, int err);
void side_urgent(struct relay *r, struct side *s);

#endif /* RELAY_LANE_H */
