/* SPDX-License-Identifier: MIT */
/*
 * engine.h - what may move the lanes of a relay instead of the readiness pump
 *
 * The pump (pump.c, lane.c) runs every relay: when epoll says that a socket is
 * ready, its lanes read and write. An engine takes lanes over from it, each by
 * giving it a conduit of its own, lane.own, whose fill and drain begin a read or a
 * write, and say -EINPROGRESS until it is over. Then the engine has the relay run
 * by loop_soon(). It may hand a lane back to the pump at any time, for good, by
 * taking that conduit away, when nothing is in it or in progress.
 *
 * relay_env.engine is NULL where there is the pump alone.
 */
#ifndef RELAY_ENGINE_H
#define RELAY_ENGINE_H

#include "relay/relay.h"

/**
 * struct engine_ops - an engine; all but @open with a relay_env that has it
 * @open:	make it for the relays of one thread, and set relay_env.engine
 *		Return: 0; or a negative errno, and relays go on without
 * @close:	take all back that @open made; all relays are done
 * @start:	take the lanes of a relay over, or some of them, or none
 * @settle:	have no write of a lane be in progress: what it holds is thrown
 *		away next; what was written by then counts as delivered
 * @discard:	read and throw away. Return: as conduit_ops.fill
 * @stop:	have no lane of a relay any more, which has thrown away what it
 *		held; what was received for it beyond that is dropped, and counted
 *
 * @settle and @discard are called for lanes with lane.own alone.
 */
struct engine_ops {
	int (*open)(struct relay_env *env);
	void (*close)(struct relay_env *env);
	void (*start)(struct relay *r);
	void (*settle)(struct lane *l);
	ssize_t (*discard)(struct lane *l);
	void (*stop)(struct relay *r, enum relay_drop why);
};

/* The head of what an engine keeps for one thread. */
struct engine {
	const struct engine_ops *ops;
};

/* Return: the engine of a mode, or NULL: in this build there is the pump alone. */
const struct engine_ops *engine_of(enum relay_mode mode);

#endif /* RELAY_ENGINE_H */
