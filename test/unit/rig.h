/* SPDX-License-Identifier: MIT */
/*
 * A loop, what relays share, and relays on it, each between two peers that the
 * test plays.
 *
 *	peer[0] ===== side[0]  relay  side[1] ===== peer[1]
 *
 * Either the test turns the loop itself, to look at each turn, or rig_spin()
 * has a thread do it while the test plays the peers; then only what is said to
 * be so may be read before rig_rest().
 *
 * FAULTS 1, 2, ... in the tests are the numbers of a list of how an early sketch
 * of sluice broke; the tests say in words what each was.
 *
 * rig_close() fails the test if anything is left over: a relay not done, or
 * done twice, a descriptor, a conduit not given back, a sum that is wrong.
 */
#ifndef UNIT_RIG_H
#define UNIT_RIG_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/util.h"
#include "relay/relay.h"
#include "support/peer.h"
#include "support/stamp.h"
#include "support/suite.h"

#define RIG_PIPE_SIZE  65536
#define RIG_PIPE_LIMIT 16
#define RIG_BUF_SIZE   16384

struct rig {
	struct loop loop;
	struct relay_env env;
	int fds; /* open before it */
	struct wire *wires;

	struct watch ambush;
	void (*spring)(void *arg);
	void *arg;

	pthread_t thread;
	atomic_bool spins, stop;
};

/**
 * struct wire - one relay and the peers at its ends
 * @peer:	blocking; the test's to use and to close, -1 once it has
 * @done:	how often the relay's done was called; readable at any time
 * @how, @clean: as of then
 */
struct wire {
	struct relay relay;
	struct rig *rig;
	struct wire *next;
	int peer[2];
	atomic_int done;
	enum relay_end how[2];
	bool clean;
};

/* How many modes there are to be tested, from RELAY_SPLICE on: RELAY_URING is the
 * last, and none if the build or the kernel has no io_uring. */
int rig_modes(void);

void rig_open(struct rig *g, enum relay_mode mode);
void rig_open_sized(struct rig *g, enum relay_mode mode, size_t buf_size,
		    size_t pipe_size, unsigned pipe_limit);
void rig_close(struct rig *g);

/* Makes the sockets; has them watched, and starts the relay; all of it. */
void wire_plug(struct rig *g, struct wire *w);
void wire_start(struct wire *w);
void wire_lay(struct rig *g, struct wire *w);
/* Starts the relay with the watches as they are. */
void wire_take_over(struct wire *w);

/* Closes both peers that are still open. */
void wire_hang_up(struct wire *w);

/* A turn that does not wait; checks that every lane holds at most a fill. */
void rig_turn(struct rig *g);
/* So many of them. */
void rig_turns(struct rig *g, int n);
/* Turns until nothing moves any more. */
void rig_settle(struct rig *g);
/* Turns until the relay is done, or fails the test. */
void rig_finish(struct rig *g, struct wire *w);

/*
 * In the next turn, has @spring called while the events of the batch are being
 * told: after the kernel has said what is ready, before any relay acts on it.
 */
void rig_ambush(struct rig *g, void (*spring)(void *arg), void *arg);

void rig_spin(struct rig *g);
void rig_rest(struct rig *g);

/* Has peer @i say @stream, and a thread turn the loop, until its lane holds what
 * its sink does not take, and nothing moves. Returns how much was said. */
uint64_t rig_stall(struct rig *g, struct wire *w, int i, unsigned stream);

/* Waits until @w is done, while the thread turns; fails the test if not soon. */
void wire_wait(struct wire *w);

/* Sends, or receives and checks, the @n bytes at @offset of stream @stream. */
void say(int fd, unsigned stream, uint64_t offset, size_t n);
void hear(int fd, unsigned stream, uint64_t offset, size_t n);

/* Sends stamped bytes on @fd, from @offset on, until it takes no more and @ms
 * have passed without a change; returns how many. */
uint64_t say_until_full(int fd, unsigned stream, uint64_t offset, int ms);

/* Waits until the other kernel has acknowledged all that @fd has said. */
void await_acked(int fd);

/* Bytes that came in, and bytes that went out or are known to be lost. */
uint64_t tally_in(const struct relay_stats *t);
uint64_t tally_out(const struct relay_stats *t);

size_t lane_holds(const struct lane *l);

#endif /* UNIT_RIG_H */
