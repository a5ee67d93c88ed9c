/* SPDX-License-Identifier: MIT */
/*
 * What lanes hold, what they borrow and what they give back.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "relay/conduit.h"
#include "unit/rig.h"

#define MODES (rig_modes() - 1)

/* All but RELAY_AUTO. */
static enum relay_mode mode_of(int i)
{
	return i > RELAY_COPY ? RELAY_URING : (enum relay_mode)i;
}

/* Has the peer say, and the loop turn, until nothing moves any more. */
static uint64_t stuff(struct rig *g, struct wire *w, unsigned stream)
{
	uint64_t said = 0, before;

	do {
		before = said;
		for (int i = 0; i < 20; i++) {
			char buf[3000];
			ssize_t n;

			stamp_fill(buf, stream, said, sizeof(buf));
			n = send(w->peer[0], buf, sizeof(buf), MSG_DONTWAIT);
			said += n > 0 ? (uint64_t)n : 0;
		}
		rig_turn(g);
		if (said == before)
			rig_settle(g);
	} while (said > before);
	return said;
}

/* FAULTS 8: rig_turn() looks at every turn whether a lane holds more than one
 * fill, and whether it holds what it has read and not delivered. */
START_TEST(a_stalled_reader_costs_one_fill_and_no_more)
{
	struct lane *l;
	struct wire w;
	struct rig g;
	uint64_t said;
	size_t held;

	rig_open(&g, mode_of(_i));
	wire_lay(&g, &w);
	l = &w.relay.lane[0];
	said = stuff(&g, &w, 1);
	held = lane_holds(l);
	ck_assert_uint_gt(held, 0);
	ck_assert_uint_gt(said, l->read); /* the rest waits in the source */

	/* a little room makes the lane drain, but not fill */
	hear(w.peer[1], 1, 0, 1000);
	rig_settle(&g);
	ck_assert_uint_le(lane_holds(l), held);
	rig_spin(&g);
	hear(w.peer[1], 1, 1000, said - 1000);
	wire_hang_up(&w);
	wire_wait(&w);
	rig_close(&g);
}
END_TEST

START_TEST(a_lane_keeps_a_pipe_of_its_own_until_the_end)
{
	struct conduit *own[2];
	struct wire w;
	struct rig g;

	rig_open(&g, RELAY_SPLICE);
	g.env.own_pipes = true;
	wire_lay(&g, &w);
	for (unsigned n = 0; n < 10; n++)
		for (unsigned i = 0; i < 2; i++) {
			struct conduit *c;

			say(w.peer[i], i, n * 100, 100);
			rig_settle(&g);
			hear(w.peer[!i], i, n * 100, 100);
			c = w.relay.lane[i].conduit;
			ck_assert_ptr_nonnull(c);
			ck_assert(c->ops->is_pipe);
			if (n)
				ck_assert_ptr_eq(c, own[i]);
			own[i] = c;
		}
	ck_assert_ptr_ne(own[0], own[1]);
	ck_assert_uint_eq(counter_read(&g.env.stats.pipes_lent), 2);
	wire_hang_up(&w);
	rig_finish(&g, &w);
	ck_assert_uint_eq(g.env.pipes.freelist.n, 2);
	rig_close(&g);
}
END_TEST

#define MANY 20

START_TEST(a_few_pipes_serve_many_connections)
{
	static struct wire w[MANY];
	struct rig g;

	rig_open_sized(&g, RELAY_SPLICE, RIG_BUF_SIZE, RIG_PIPE_SIZE, 2);
	for (int i = 0; i < MANY; i++)
		wire_lay(&g, &w[i]);
	for (unsigned n = 0; n < 3; n++) {
		for (unsigned i = 0; i < MANY; i++)
			say(w[i].peer[0], i, n * 10000, 10000);
		rig_settle(&g);
		for (unsigned i = 0; i < MANY; i++)
			hear(w[i].peer[1], i, n * 10000, 10000);
	}
	for (int i = 0; i < MANY; i++) {
		ck_assert_uint_eq(w[i].relay.lane[0].by_pipe, 30000);
		wire_hang_up(&w[i]);
	}
	for (int i = 0; i < MANY; i++)
		rig_finish(&g, &w[i]);
	ck_assert_uint_le(counter_read(&g.env.stats.pipes_made), 2);
	rig_close(&g);
}
END_TEST

/* FAULTS 6, with one pipe for two. */
START_TEST(a_stalled_lane_hands_its_pipe_over_and_loses_nothing)
{
	struct wire stalled, other;
	struct rig g;
	uint64_t said;

	rig_open_sized(&g, RELAY_SPLICE, RIG_BUF_SIZE, RIG_PIPE_SIZE, 1);
	wire_lay(&g, &stalled);
	said = stuff(&g, &stalled, 1);
	ck_assert(stalled.relay.lane[0].conduit->ops->is_pipe);

	wire_lay(&g, &other);
	rig_turns(&g, 500);
	say(other.peer[0], 2, 0, 1000);
	rig_turns(&g, 3);
	hear(other.peer[1], 2, 0, 1000);
	ck_assert_uint_eq(other.relay.lane[0].by_pipe, 1000);
	ck_assert(!stalled.relay.lane[0].conduit->ops->is_pipe);

	rig_spin(&g);
	hear(stalled.peer[1], 1, 0, said);
	wire_hang_up(&stalled);
	wire_hang_up(&other);
	wire_wait(&stalled);
	wire_wait(&other);
	rig_close(&g);
}
END_TEST

START_TEST(the_pipe_of_a_relay_that_ends_stalled_is_not_lent_again)
{
	struct wire stalled, other;
	struct rig g;

	rig_open_sized(&g, RELAY_SPLICE, RIG_BUF_SIZE, RIG_PIPE_SIZE, 1);
	wire_lay(&g, &stalled);
	stuff(&g, &stalled, 1);
	relay_stop(&stalled.relay);
	rig_finish(&g, &stalled);
	wire_lay(&g, &other);
	say(other.peer[0], 2, 0, 1000);
	rig_turns(&g, 3);
	hear(other.peer[1], 2, 0, 1000);
	ck_assert_uint_eq(other.relay.lane[0].by_pipe, 1000);
	ck_assert_uint_eq(counter_read(&g.env.stats.pipes_made), 2);
	ck_assert_uint_eq(counter_read(&g.env.stats.pipes_now), 1);
	wire_hang_up(&other);
	rig_finish(&g, &other);
	rig_close(&g);
}
END_TEST

/* FAULTS 14: every byte is somewhere; rig_close() adds up. */
START_TEST(the_tally_tells_of_each_call_what_it_moved)
{
	const struct relay_stats *t;
	struct wire w;
	struct rig g;

	rig_open(&g, mode_of(_i));
	t = &g.env.stats;
	wire_lay(&g, &w);
	say(w.peer[0], 1, 0, 40000);
	rig_settle(&g);
	hear(w.peer[1], 1, 0, 40000);
	say(w.peer[1], 2, 0, 100);
	rig_settle(&g);
	hear(w.peer[0], 2, 0, 100);
	ck_assert_uint_eq(counter_read(&t->splice_in.bytes), _i ? 0 : 40100);
	ck_assert_uint_eq(counter_read(&t->splice_out.bytes), _i ? 0 : 40100);
	ck_assert_uint_eq(counter_read(&t->recv.bytes), _i ? 40100 : 0);
	ck_assert_uint_eq(counter_read(&t->send.bytes), _i ? 40100 : 0);
	ck_assert_uint_eq(counter_read(&t->sink_full), 0);
	stuff(&g, &w, 1);
	ck_assert_uint_gt(counter_read(&t->sink_full), 0);
	ck_assert_uint_gt(
		counter_read(_i ? &t->send.calls : &t->splice_out.calls), 2);
	wire_hang_up(&w);
	rig_finish(&g, &w);
	ck_assert_uint_gt(counter_read(&t->dropped[DROP_sink_gone]) +
				  counter_read(&t->discard.bytes),
			  0);
	for (int i = 1; i < FALLBACKS; i++)
		ck_assert_uint_eq(counter_read(&t->fallbacks[i]), 0);
	rig_close(&g);
}
END_TEST

/* recv(2) alone: a short count means that there is no more, so that a message
 * costs one call and not two; splice(2) has to be asked again (K1). */
START_TEST(a_short_message_costs_no_call_too_many)
{
	struct wire w;
	struct rig g;
	uint64_t calls;

	rig_open(&g, RELAY_COPY);
	wire_lay(&g, &w);
	for (unsigned n = 0; n < 10; n++) {
		say(w.peer[0], 1, n, 1);
		rig_settle(&g);
		hear(w.peer[1], 1, n, 1);
	}
	calls = counter_read(&g.env.stats.recv.calls);
	ck_assert_uint_le(calls, 10 + 2); /* each lane's first look is free */
	wire_hang_up(&w);
	rig_finish(&g, &w);
	rig_close(&g);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("room");
	TCase *tc = support_case(s, "room");

	tcase_add_loop_test(tc, a_stalled_reader_costs_one_fill_and_no_more, 0,
			    MODES);
	tcase_add_test(tc, a_lane_keeps_a_pipe_of_its_own_until_the_end);
	tcase_add_test(tc, a_few_pipes_serve_many_connections);
	tcase_add_test(tc, a_stalled_lane_hands_its_pipe_over_and_loses_nothing);
	tcase_add_test(tc,
		       the_pipe_of_a_relay_that_ends_stalled_is_not_lent_again);
	tcase_add_loop_test(tc, the_tally_tells_of_each_call_what_it_moved, 0,
			    MODES);
	tcase_add_test(tc, a_short_message_costs_no_call_too_many);
	return support_main(s);
}
