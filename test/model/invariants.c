/* SPDX-License-Identifier: MIT */
/*
 * invariants.c - what must hold between turns, before sleep, and at the end
 *
 * What must hold of the stream is looked at where it leaves (sim_out.c). Here:
 *
 *	progress   the loop does not sleep while a lane could move,
 *	no spin    calls that move nothing are few for each event,
 *	thrift     a lane that holds nothing holds no conduit,
 *	the end    is reached once, in order if both peers ended in order, and
 *		   by a RST, after the last byte, if one of them did not,
 *	the books  what the relay counts is what the kernel has seen.
 */
#include "base/util.h"
#include "model/world.h"

/* A call may come to nothing so often, for each relay, each event, and each
 * call that did move something or was made to fail. */
#define IDLE_FREE  10
#define IDLE_EVENT 4
#define IDLE_MOVE  2

/* How long the pump may wait before it asks again: for memory, and whether a
 * peer has acknowledged all. */
#define HUNGRY_NS (10 * NS_PER_MS)
#define ASK_NS	  (64 * NS_PER_MS)

/* A reader waits this much longer for a slow clock: see tick(). */
#define SLOW_NS (400 * NS_PER_MS)

/* Whether nothing more is to be had of a connection. */
bool is_over(const struct sim_sock *s)
{
	return s->dead || s->failed;
}

static size_t held(const struct lane *l)
{
	return (l->conduit ? l->conduit->held : 0) + l->urgent;
}

static unsigned long ul(uint64_t n)
{
	return (unsigned long)n;
}

static void check_lane(const struct run *run, unsigned i)
{
	const struct relay *r = run->relay;
	const struct lane *l = &r->lane[i];
	const struct sim_sock *from = run->sock[i], *to = run->sock[!i];

	if (l->read != from->taken || l->delivered != to->sent ||
	    l->by_pipe != to->by_pipe)
		sim_fail("lane %u counts %lu read, %lu delivered, %lu by pipe, "
			 "and it is %lu, %lu, %lu",
			 i, ul(l->read), ul(l->delivered), ul(l->by_pipe),
			 ul(from->taken), ul(to->sent), ul(to->by_pipe));
	if (r->side[i].gone && !is_over(from) && !from->broke)
		sim_fail("side %u is taken for dead and lives", i);
	if (!r->side[i].gone && r->side[i].fin && !from->fin_in)
		sim_fail("side %u is taken to have said FIN", i);
}

static void check_held(const struct run *run, unsigned i)
{
	const struct relay *r = run->relay;
	uint64_t n = run->sock[i]->taken - run->sock[!i]->sent;
	uint8_t state = r->lane[i].state;

	if ((state == LANE_SHUT || state == LANE_ENDED) && held(&r->lane[i]))
		sim_fail("lane %u has ended and holds bytes", i);
	if (run->sock[i]->broke)
		return; /* a pipe may have lost some */
	if (!r->side[!i].gone && held(&r->lane[i]) != n)
		sim_fail("lane %u holds %zu bytes, not %lu", i,
			 held(&r->lane[i]), ul(n));
}

static void check_spin(void)
{
	const struct sim_count *c = &sim.count;
	bool hungry = sim.hungry_turn + 1 >= sim.turn;

	if (c->idle > IDLE_FREE * world.runs + IDLE_EVENT * c->events +
			      IDLE_MOVE * (c->moved + c->faults))
		sim_fail("a turn of %u events made %u calls for nothing, "
			 "and %u for something",
			 c->events, c->idle, c->moved);
	if (c->events || c->moved || !c->idle || hungry)
		world.dull = 0;
	else if (++world.dull > 2 * world.runs)
		/* each may have hoped for more, or been in doubt */
		sim_fail("the loop spins");
}

/* At worst it waits behind all others that have had their share. */
static void check_stop(struct run *run)
{
	if (run->stopped && run->turns_since++ > world.runs)
		sim_fail("relay_stop() of %u comes to nothing", run->sock[0]->id);
}

void check_turn(void)
{
	check_spin();
	for (unsigned i = 0; i < world.runs; i++) {
		struct run *run = &world.run[i];

		if (!run->relay)
			continue;
		check_stop(run);
		for (unsigned k = 0; k < 2; k++) {
			check_lane(run, k);
			check_held(run, k);
		}
	}
	check_books();
}

static void check_pools(void)
{
	unsigned pipes = 0, bufs = 0, open = 0;
	const struct relay_stats *t = &world.env.stats;

	for (unsigned i = 0; i < world.runs * 2; i++) {
		const struct relay *r = world.run[i / 2].relay;

		if (!r || !r->lane[i % 2].conduit)
			continue;
		if (r->lane[i % 2].conduit->ops->is_pipe)
			pipes++;
		else
			bufs++;
	}
	for (unsigned i = 0; i < SIM_PIPES; i++) {
		if (sim.pipe[i].ends == 1)
			sim_fail("a pipe is closed by half");
		open += sim.pipe[i].ends / 2;
	}
	if (counter_read(&t->pipes_out) != pipes ||
	    counter_read(&t->buffers_now) != bufs ||
	    counter_read(&t->pipes_now) != open ||
	    open != pipes + world.env.pipes.freelist.n)
		sim_fail("%lu pipes and %lu buffers are lent, %u and %u used; "
			 "%u pipes are open, %u of them free",
			 ul(counter_read(&t->pipes_out)),
			 ul(counter_read(&t->buffers_now)), pipes, bufs, open,
			 world.env.pipes.freelist.n);
	if (open > world.rules.pipe_limit)
		sim_fail("%u pipes are open", open);
}

/* Fails if a count of the stats is not what the kernel has seen. */
static void check_count(const char *what, const struct relay_call *c,
			uint64_t seen)
{
	if (counter_read(&c->bytes) != seen)
		sim_fail("the stats says %lu bytes of %s, and it is %lu",
			 ul(counter_read(&c->bytes)), what, ul(seen));
}

void check_books(void)
{
	const struct relay_stats *t = &world.env.stats;
	uint64_t in, out;

	check_pools();
	check_count("splice_in", &t->splice_in, sim.total[CALL_SPLICE_IN]);
	check_count("splice_out", &t->splice_out, sim.total[CALL_SPLICE_OUT]);
	check_count("recv", &t->recv, sim.total[CALL_RECV]);
	check_count("send", &t->send, sim.total[CALL_SEND]);
	check_count("spill", &t->spill, sim.total[CALL_READ]);
	check_count("discard", &t->discard, sim.discarded);
	in = counter_read(&t->splice_in.bytes) + counter_read(&t->recv.bytes);
	out = counter_read(&t->splice_out.bytes) + counter_read(&t->send.bytes);
	for (unsigned i = 0; i < DROPS; i++)
		out += counter_read(&t->dropped[i]);
	for (unsigned i = 0; i < world.runs; i++)
		if (world.run[i].relay)
			out += held(&world.run[i].relay->lane[0]) +
			       held(&world.run[i].relay->lane[1]);
	if (in != out)
		sim_fail("the stats does not add up: %lu bytes in, %lu out",
			 ul(in), ul(out));
}

/* Whether it may sleep because it has asked to be woken for memory. */
static bool is_excused(const struct relay *r)
{
	return sim.hungry_turn && timer_is_set(&r->timer) &&
	       r->timer.due_ns <= sim.now_ns + HUNGRY_NS;
}

/* Bytes of a peer that were read and that no one was there to be told. */
static size_t discarded(const struct run *run, unsigned i)
{
	return (size_t)(run->sock[i]->taken - run->sock[!i]->sent);
}

/* A peer whose other is dead must not hang in a write before it has seen what
 * that one said last; but it is not read for ever. */
static void check_discard(const struct run *run, unsigned i)
{
	const struct sim_sock *from = run->sock[i];
	size_t n = discarded(run, i), most = DISCARD_MAX * world.rules.scale;

	if (!is_over(run->sock[!i]) || is_over(from))
		return;
	/* What was held is dropped, then one read goes beyond the bound. */
	if (n > most + 2 * (from->rcvbuf + 16 * world.rules.scale))
		sim_fail("%zu bytes of %u are read for nothing", n, from->id);
	if (n <= most && from->copied < from->arrived)
		sim_fail("%u is dead, and the peer of %u hangs",
			 run->sock[!i]->id, from->id);
}

static void check_lane_sleeps(const struct run *run, unsigned i)
{
	const struct relay *r = run->relay;
	const struct lane *l = &r->lane[i];
	const struct sim_sock *from = run->sock[i], *to = run->sock[!i];
	bool reads = l->state == LANE_OPEN || l->state == LANE_DISCARD;

	if (is_over(from) && !r->side[i].gone)
		sim_fail("the end of %u is slept over", from->id);
	if (!held(l) && l->conduit &&
	    !(world.rules.own_pipes && l->conduit->ops->is_pipe))
		sim_fail("lane %u holds a conduit, and nothing in it", i);
	if (is_excused(r))
		return;
	if (reads && !held(l) && tcp_has_news(from))
		sim_fail("lane %u sleeps, though %u can be read", i, from->id);
	if (held(l) && tcp_is_writable(to))
		sim_fail("lane %u sleeps, though %u can be written", i, to->id);
	if (l->state == LANE_DRAINING && !held(l))
		sim_fail("lane %u sleeps, and a FIN waits in it", i);
	check_discard(run, i);
}

/* One side is dead: the other must be told in time. */
static void check_ending(const struct run *run, unsigned dead)
{
	const struct relay *r = run->relay;
	struct sim_sock *s = run->sock[dead], *other = run->sock[!dead];
	uint64_t due = r->timer.due_ns, last;

	if (!s->seen_ns)
		s->seen_ns = sim.now_ns;
	last = s->seen_ns + LINGER_MS * NS_PER_MS;
	if (is_excused(r))
		last += HUNGRY_NS;
	if (!timer_is_set(&r->timer))
		sim_fail("%u is dead, and nothing will wake the relay", s->id);
	if (due > last)
		sim_fail("%u is dead, and it waits too long", s->id);
	if (sim.now_ns > last)
		sim_fail("%u has been dead for too long", s->id);
	if (out_all(other) && due > sim.now_ns + ASK_NS &&
	    (!s->fin_in || other->shut))
		sim_fail("%u is dead, and nobody asks whether %u has all",
			 s->id, other->id);
}

/* How long nothing may move, 0 for ever. */
static uint64_t quiet_ns(const struct run *run)
{
	unsigned ms = world.rules.idle_ms, half = world.rules.half_ms;

	if (run->sock[0]->shut != run->sock[1]->shut && half && (!ms || half < ms))
		ms = half;
	return ms * NS_PER_MS;
}

static uint64_t moved_ns(const struct run *run)
{
	uint64_t a = run->sock[0]->moved_ns, b = run->sock[1]->moved_ns;

	return a < b ? b : a;
}

static void check_quiet(const struct run *run)
{
	uint64_t ns = quiet_ns(run), moved = moved_ns(run);

	if (ns && !sim.hungry_turn && sim.now_ns > moved + ns + ns / 8 + SLOW_NS)
		sim_fail("%u has been silent for too long", run->sock[0]->id);
}

/* The loop would sleep now. */
void check_sleep(void)
{
	uint64_t due = timers_next(&world.loop.timers);

	if (due != UINT64_MAX && (!sim_alarm() || sim_alarm() > due))
		sim_fail("a deadline would be slept over");
	for (unsigned i = 0; i < world.runs; i++) {
		const struct run *run = &world.run[i];

		if (!run->relay || !run->started)
			continue;
		check_lane_sleeps(run, 0);
		check_lane_sleeps(run, 1);
		if (is_over(run->sock[0]))
			check_ending(run, 0);
		if (is_over(run->sock[1]))
			check_ending(run, 1);
		check_quiet(run);
	}
}

/* All that @dead said reached the peer of the other side. */
static void check_told(const struct run *run, unsigned dead)
{
	struct sim_sock *s = run->sock[dead], *other = run->sock[!dead];
	bool rst = s->dead_err == ECONNRESET || s->dead_err == EPIPE;
	bool all = out_all(other) || (s->failed && other->out_at >= s->said);

	if (!all || other->acked != other->sent)
		sim_fail("the RST of %u overtakes its bytes: %lu of %lu sent, "
			 "%lu of %lu acknowledged",
			 s->id, ul(other->out_at), ul(s->arrived),
			 ul(other->acked), ul(other->sent));
	if (s->dead && rst && s->fin_in && !other->fin_acked)
		sim_fail("the RST of %u overtakes its FIN", s->id);
}

static void check_how(const struct run *run, unsigned i)
{
	const struct sim_sock *s = run->sock[i];

	switch (relay_how(run->relay, i)) {
	case RELAY_END_FIN:
		if (!s->fin_in)
			sim_fail("%u is said to have ended in order", s->id);
		break;
	case RELAY_END_RESET:
		if (!is_over(s) && !s->broke)
			sim_fail("%u is said to have reset", s->id);
		break;
	case RELAY_END_ERROR:
		if (s->dead_err != run->relay->side[i].error && !s->broke)
			sim_fail("%u is said to have failed", s->id);
		break;
	case RELAY_END_OPEN:
		break;
	}
}

/* The second FIN is left to close(), which follows at once. */
static void check_clean(const struct run *run)
{
	if (!run->sock[0]->shut && !run->sock[1]->shut)
		sim_fail("the relay is done, and nobody was told FIN");
	for (unsigned i = 0; i < 2; i++) {
		struct sim_sock *s = run->sock[i];

		if (!s->fin_in || !out_all(s))
			sim_fail("the relay is done, and %u is not", s->id);
	}
}

/* In done(), before the sockets are closed. */
void check_done(const struct run *run)
{
	const struct relay *r = run->relay;
	bool dead[2] = { is_over(run->sock[0]), is_over(run->sock[1]) };
	uint64_t since = UINT64_MAX;

	for (unsigned i = 0; i < 2; i++) {
		check_lane(run, i);
		check_how(run, i);
		if (r->lane[i].conduit || r->lane[i].urgent)
			sim_fail("lane %u is done and holds something", i);
	}
	if (timer_is_set(&r->timer) || !list_empty(&r->job.node))
		sim_fail("the relay is done and goes on");
	if (relay_is_clean(r)) {
		check_clean(run);
	} else if (r->stop == RELAY_STOPPED) {
		if (!run->stopped)
			sim_fail("nobody has stopped it");
	} else if (r->stop == RELAY_IDLE || r->stop == RELAY_HALF_CLOSED) {
		if (!quiet_ns(run) || sim.now_ns < moved_ns(run) + quiet_ns(run))
			sim_fail("it is ended as silent, and is not");
	} else if (run->sock[0]->broke) {
		return;
	} else if (!dead[0] && !dead[1]) {
		sim_fail("both peers are reset, and neither was");
	} else if (r->stop == RELAY_LINGERED) {
		for (unsigned i = 0; i < 2; i++)
			if (dead[i] && run->sock[i]->dead_ns < since)
				since = run->sock[i]->dead_ns;
		if (sim.now_ns < since + LINGER_MS * NS_PER_MS)
			sim_fail("a peer had no time to read what was said");
	} else if (dead[0] != dead[1]) {
		check_told(run, dead[1]);
	}
}
