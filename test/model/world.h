/* SPDX-License-Identifier: MIT */
/*
 * world.h - a loop, some relays on simulated sockets, and what must hold
 */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include "model/sim.h"
#include "relay/relay.h"

#define RUNS (SIM_SOCKS / 2)

/* Short, so that no schedule has to ask many times. */
#define LINGER_MS   200
#define DISCARD_MAX 150

/**
 * struct world_rules - what kind of world
 * @scale:	so many times as many bytes as usual
 * @late:	the owner starts its relays only after some turns
 * @idle_ms:	a relay ends if nothing moves for so long, 0 for never; and
 *		@half_ms: once one side has been shut
 */
struct world_rules {
	struct sim_rules sim;
	enum relay_mode mode;
	bool own_pipes, late;
	unsigned scale, pipe_limit, runs, idle_ms, half_ms;
	size_t pipe_size, buf_size, sndbuf, rcvbuf;
};

/**
 * struct run - a relay and its two sockets
 * @relay:	freed by its done(), then NULL
 * @stopped:	relay_stop() was called, @turns_since turns ago
 */
struct run {
	struct relay *relay;
	struct sim_sock *sock[2];
	bool started, stopped;
	unsigned dones, turns_since;
};

/* What was seen to happen, over all worlds; to tell an idle model by. */
struct coverage {
	unsigned long worlds, turns, clean, reset, lingered, stopped, idle;
	unsigned long urgent, discarded, spilled, by_pipe, copied, faults;
};

/**
 * struct world - all there is
 * @dull:	turns in a row that called the kernel and moved nothing, though
 *		nothing had happened
 */
struct world {
	struct world_rules rules;
	struct loop loop;
	struct relay_env env;
	struct run run[RUNS];
	unsigned runs, dull;
	struct coverage seen;
};

extern struct world world;

/* world.c */
void world_open(const struct world_rules *rules);
void world_start(void);
void world_turn(void);
bool world_busy(void);
void world_settle(void);
void world_wait(unsigned ms);
void world_finish(bool read);
void world_close(void);
void world_describe(void);

/* invariants.c */
bool is_over(const struct sim_sock *s);
void check_turn(void);
void check_sleep(void);
void check_done(const struct run *run);
void check_books(void);

#endif /* MODEL_WORLD_H */
