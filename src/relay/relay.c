/* SPDX-License-Identifier: MIT */
/*
 * relay.c - the door to the mechanism: set up, start, stop, how it went.
 */
#include "relay/relay.h"

#include "base/util.h"
#include "relay/defaults.h"
#include "relay/engine.h"
#include "relay/lane.h"

/**
 * relay_env_init() - make what the relays of one thread share
 * @loop:	the thread's loop
 * @buf_size:	bytes a buffer
 * @pipe_size:	bytes wished for a pipe
 * @pipe_limit:	how many pipes at most
 *
 * It splices, lends pipes and has default bounds; change that before the first
 * relay starts.
 *
 * Return: 0, or -ENOMEM.
 */
int relay_env_init(struct relay_env *env, struct loop *loop, size_t buf_size,
		   size_t pipe_size, unsigned pipe_limit)
{
	*env = (struct relay_env){
		.loop = loop,
		.mode = RELAY_SPLICE,
		.budget = DEFAULT_BUDGET,
		.linger_ms = DEFAULT_LINGER_MS,
		.discard_max = DEFAULT_DISCARD_MAX,
	};
	pipes_init(&env->pipes, pipe_size, pipe_limit, &env->bufs, &env->stats,
		   loop);
	return bufs_init(&env->bufs, buf_size, &env->stats, loop);
}

/* All relays must be done. */
void relay_env_fini(struct relay_env *env)
{
	if (env->engine)
		env->engine->ops->close(env);
	pipes_fini(&env->pipes);
	bufs_fini(&env->bufs);
}

/**
 * relay_init() - prepare a relay, before its watches are registered
 *
 * Its sockets are nonblocking, with TCP_NODELAY and SO_OOBINLINE set.
 * The owner then registers side[0].watch and side[1].watch for LOOP_SOCKET,
 * with a callback of its own if it likes; what they have seen by relay_start()
 * is not lost. If the owner has read an error off a socket, it leaves it in
 * side.error. Until the start the relay may simply be forgotten, and its job
 * be used for something else.
 */
void relay_init(struct relay *r, struct relay_env *env)
{
	*r = (struct relay){
		.env = env,
		.side = { { .watch.fd = -1, .index = 0 },
			  { .watch.fd = -1, .index = 1 } },
		.first_gone = -1,
	};
	list_init(&r->job.node);
	list_init(&r->side[0].watch.recheck);
	list_init(&r->side[1].watch.recheck);
}

/**
 * relay_start() - relay, from the end of this batch on
 * @done:	called once, at the end; until then the sockets are the
 *		relay's to read and write, and the owner's to close after it
 */
void relay_start(struct relay *r, void (*done)(struct relay *))
{
	r->done = done;
	r->job.fn = pump_run;
	r->side[0].watch.fn = pump_ready;
	r->side[1].watch.fn = pump_ready;
	r->lane[0].use_pipe = r->lane[1].use_pipe = r->env->mode == RELAY_SPLICE;
	if (r->env->engine)
		r->env->engine->ops->start(r);
	if (r->env->refused)
		counter_add(&r->env->stats.fallbacks[r->env->refused], 1);
	idle_start(r);
	loop_soon(r->env->loop, &r->job);
}

/**
 * relay_fail() - say that the connection of side @i is dead
 * @err:	positive errno
 *
 * For an owner who knows better than TCP does yet. The other side is still
 * told all that this one said.
 */
void relay_fail(struct relay *r, unsigned i, int err)
{
	r->side[i].failed = true;
	side_gone(r, i, err);
	loop_soon(r->env->loop, &r->job);
}

/* Ends a running relay: @done follows, after this batch. */
void relay_stop(struct relay *r)
{
	if (!r->stop)
		r->stop = RELAY_STOPPED;
	loop_soon(r->env->loop, &r->job);
}

/* How side @i ended: meant for after @done. */
enum relay_end relay_how(const struct relay *r, unsigned i)
{
	const struct side *s = &r->side[i];

	if (s->gone)
		return !s->error || s->error == ECONNRESET || s->error == EPIPE
			       ? RELAY_END_RESET
			       : RELAY_END_ERROR;
	return s->fin ? RELAY_END_FIN : RELAY_END_OPEN;
}

/*
 * Whether both sides said FIN and were told of the other's. If not, the owner
 * must reset both sockets: an end that was cut short must not look like one
 * that was reached.
 */
bool relay_is_clean(const struct relay *r)
{
	return r->lane[0].state == LANE_SHUT && r->lane[1].state == LANE_SHUT;
}
