/* SPDX-License-Identifier: MIT */
/*
 * world.c - the owner of the relays, and the end of every schedule
 *
 * The owner does what the daemon does: it registers both sockets, starts the
 * relay, and when that is done closes both, by a RST unless all went well. It
 * frees the relay at once, so that whatever still touches it is seen.
 */
#include "model/world.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/sock.h"
#include "support/suite.h"

/* More turns than any schedule needs before it sleeps. */
#define MANY_TURNS 5000

struct world world;

static struct run *run_of(const struct relay *r)
{
	for (unsigned i = 0; i < world.runs; i++)
		if (world.run[i].relay == r)
			return &world.run[i];
	sim_fail("done() of no relay, or for the second time");
}

static void note(const struct relay *r)
{
	struct coverage *c = &world.seen;

	c->clean += relay_is_clean(r);
	c->reset += r->side[0].gone != r->side[1].gone;
	c->lingered += r->stop == RELAY_LINGERED;
	c->stopped += r->stop == RELAY_STOPPED;
	c->idle += r->stop == RELAY_IDLE || r->stop == RELAY_HALF_CLOSED;
}

static void done(struct relay *r)
{
	struct run *run = run_of(r);
	bool reset = !relay_is_clean(r);

	trace("done", (int)run->sock[0]->id, reset, r->stop);
	run->dones++;
	check_done(run);
	note(r);
	for (unsigned i = 0; i < 2; i++) {
		struct sim_sock *s = run->sock[i];
		bool open = !s->closed;

		sock_close(r->side[i].watch.fd, reset);
		if (s->rst_out != (reset && open))
			sim_fail("%u is closed by a %s", s->id,
				 reset ? "FIN" : "RST");
	}
	memset((void *)r, 0xdd, sizeof(*r));
	free(r);
	run->relay = NULL;
}

/* Before the relay starts: what is ready is remembered, nothing else. */
static void not_yet(struct watch *w)
{
}

static void run_open(struct run *run, const struct world_rules *rules)
{
	*run = (struct run){ .relay = malloc(sizeof(*run->relay)) };
	relay_init(run->relay, &world.env);
	for (unsigned i = 0; i < 2; i++) {
		struct sim_sock *s = sim_sock_new(rules->sndbuf, rules->rcvbuf);

		run->sock[i] = s;
		if (sock_prepare(s->file->fd))
			sim_fail("a socket cannot be prepared");
		if (loop_watch(&world.loop, &run->relay->side[i].watch,
			       s->file->fd, LOOP_SOCKET, not_yet))
			sim_fail("a socket cannot be watched");
	}
	run->sock[0]->twin = run->sock[1];
	run->sock[1]->twin = run->sock[0];
}

void world_open(const struct world_rules *rules)
{
	struct coverage seen = world.seen;

	world = (struct world){ .rules = *rules, .seen = seen };
	sim_reset(&rules->sim);
	sim.on = true;
	if (loop_init(&world.loop) ||
	    relay_env_init(&world.env, &world.loop, rules->buf_size,
			   rules->pipe_size, rules->pipe_limit))
		sim_fail("no loop");
	/* No schedule is so long that it would come to this: after the first
	 * time that it asks, it ticks; until there is little to doubt. */
	world.loop.recheck.polled_before -= 64;
	world.loop.recheck.since_ns = sim.now_ns;
	world.env.mode = rules->mode;
	world.env.own_pipes = rules->own_pipes;
	world.env.budget = rules->sim.share;
	world.env.linger_ms = LINGER_MS;
	world.env.discard_max = DISCARD_MAX * rules->scale;
	world.env.idle_ms = rules->idle_ms;
	world.env.half_close_ms = rules->half_ms;
	while (world.runs < rules->runs)
		run_open(&world.run[world.runs++], rules);
	world.seen.worlds++;
	if (!rules->late)
		world_start();
}

/* Starts what was not started. */
void world_start(void)
{
	for (unsigned i = 0; i < world.runs; i++) {
		struct run *run = &world.run[i];

		if (!run->started)
			relay_start(run->relay, done);
		if (!run->started)
			run->sock[0]->moved_ns = sim.now_ns;
		run->started = true;
	}
}

/* Whether it sleeps until a tick settles its doubts. */
static bool is_in_doubt(void)
{
	return timer_is_set(&world.loop.recheck.tick) && !sim_busy() &&
	       !loop_pending(&world.loop);
}

bool world_busy(void)
{
	return sim_busy() || loop_pending(&world.loop) ||
	       recheck_pending(&world.loop.recheck);
}

void world_turn(void)
{
	trace("turn", -1, (long)sim.turn, 0);
	sim.turn++;
	sim.count = (struct sim_count){ 0 };
	for (unsigned i = 0; i < sim.socks; i++)
		sim.sock[i].turn_read = sim.sock[i].turn_most = 0;
	sim.in_turn = true;
	if (loop_turn(&world.loop, -1)) /* nothing waits in here */
		sim_fail("loop_turn() failed");
	sim.in_turn = false;
	world.seen.turns++;
	check_turn();
}

/* Turns until the loop would sleep. */
void world_settle(void)
{
	for (unsigned n = 0; world_busy(); n++) {
		if (n == MANY_TURNS)
			sim_fail("the loop finds no rest");
		if (is_in_doubt())
			sim_advance(sim_alarm() - sim.now_ns);
		world_turn();
	}
	check_sleep();
}

/* Nothing happens for so long but what deadlines bring. */
void world_wait(unsigned ms)
{
	uint64_t until = sim.now_ns + ms * NS_PER_MS, next;

	world_settle();
	while (sim.now_ns < until) {
		next = sim_alarm() > sim.now_ns ? sim_alarm() : until;
		sim_advance((next < until ? next : until) - sim.now_ns);
		world_settle();
	}
}

/* Both peers of all relays take what is on its way to them. */
static bool all_read(void)
{
	bool any = false;

	for (unsigned i = 0; i < sim.socks; i++) {
		struct sim_sock *s = &sim.sock[i];

		if (!peer_lives(s) || !tcp_unsent(s))
			continue;
		peer_read(s, SIZE_MAX);
		any = true;
	}
	return any;
}

static void settle_peers(bool read)
{
	do
		world_settle();
	while (read && all_read());
}

/* Whether a relay runs that must come to its end without its peers' help. */
static bool is_ending(const struct run *run)
{
	return run->relay &&
	       (run->stopped || is_over(run->sock[0]) || is_over(run->sock[1]));
}

static bool any_ending(void)
{
	for (unsigned i = 0; i < world.runs; i++)
		if (is_ending(&world.run[i]))
			return true;
	return false;
}

static void finish_ending(bool read)
{
	uint64_t until = sim.now_ns + 2 * LINGER_MS * NS_PER_MS;

	settle_peers(read);
	while (any_ending() && sim_alarm() && sim_alarm() <= until) {
		if (sim_alarm() > sim.now_ns)
			sim_advance(sim_alarm() - sim.now_ns);
		settle_peers(read);
	}
}

static void finish_all(void)
{
	uint64_t until = sim.now_ns + 2 * LINGER_MS * NS_PER_MS;
	bool left;

	for (unsigned i = 0; i < sim.socks; i++)
		if (peer_lives(&sim.sock[i]) && !sim.sock[i].fin_in)
			peer_fin(&sim.sock[i]);
	do {
		settle_peers(true);
		left = false;
		for (unsigned i = 0; i < world.runs; i++)
			left |= !!world.run[i].relay;
		if (left && sim_alarm() > sim.now_ns)
			sim_advance(sim_alarm() - sim.now_ns);
	} while (left && sim_alarm() && sim.now_ns <= until);
}

/**
 * world_finish() - the end of every schedule
 * @read:	peers take all that comes; otherwise first nothing
 *
 * A relay one of whose peers is dead, or that was stopped, must come to its end
 * though the other says nothing more. Then all say FIN, and all must.
 */
void world_finish(bool read)
{
	world_start();
	sim.rules.faults = 0;
	finish_ending(read);
	if (any_ending())
		sim_fail("a RST, or a stop, does not end a relay");
	finish_all();
	for (unsigned i = 0; i < world.runs; i++)
		if (world.run[i].dones != 1)
			sim_fail("done() was called %u times, though both "
				 "peers have ended",
				 world.run[i].dones);
	for (unsigned i = 0; i < sim.socks; i++) {
		struct sim_sock *s = &sim.sock[i];

		if (peer_lives(s) &&
		    (!s->fin_acked || s->acked != s->sent || !out_all(s)))
			sim_fail("the peer of %u lacks something", s->id);
	}
}

/* After world_finish(): nothing may be left. */
void world_close(void)
{
	struct coverage *c = &world.seen;
	const struct relay_stats *t = &world.env.stats;

	check_books();
	c->by_pipe += counter_read(&t->splice_out.bytes);
	c->copied += counter_read(&t->send.bytes);
	c->spilled += counter_read(&t->spill.bytes);
	c->discarded += counter_read(&t->discard.bytes);
	c->faults += counter_read(&t->no_memory);
	for (unsigned i = 0; i < sim.socks; i++)
		for (unsigned k = 0; k < sim.sock[i].marks; k++)
			c->urgent += sim.sock[i].mark[k].fate == FATE_TAKEN;
	relay_env_fini(&world.env);
	loop_fini(&world.loop);
	if (sim.open)
		sim_fail("%u descriptors are left open", sim.open);
	sim.on = false;
}

/* For the log of a failure. */
void world_describe(void)
{
	static const char *const modes[] = { "splice", "copy", "auto" };
	const struct world_rules *r = &world.rules;

	support_note("%s, %u relays, own pipes %d, at most %u pipes of %u "
		     "slots, buffers of %zu, share %zu",
		     modes[r->mode], r->runs, r->own_pipes, r->pipe_limit,
		     r->sim.slots, r->buf_size, r->sim.share);
	support_note("sockets take %zu and bring %zu, edges %s, writes %s",
		     r->sndbuf, r->rcvbuf, r->sim.eager ? "of all" : "of change",
		     r->sim.chop ? "cut" : "whole");
}
