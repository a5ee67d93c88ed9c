/* SPDX-License-Identifier: MIT */
/*
 * Which conduit a lane borrows in mode auto: it goes by what its last fills
 * were, and does not change its mind for one of them.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "unit/rig.h"

/* A pipe has room for slots that are all taken, and yet not by little. */
#define PIPE_SIZE (4 * 65536)
#define BUF_SIZE  16384

/* Bulk: a few buffers and a pipe full; any kernel lets a socket hold so much. */
#define BULK 180000

/* After so much, pipes are tried again where they were no good. */
#define AGAIN (64 << 20)

static const struct lane *lane;
static const counter *choices;

static void open_auto(struct rig *g, struct wire *w)
{
	rig_open_sized(g, RELAY_AUTO, BUF_SIZE, PIPE_SIZE, 4);
	g->env.budget = PIPE_SIZE;
	wire_plug(g, w);
	peer_small_buffers(w->relay.side[0].watch.fd, 400000);
	wire_start(w);
	rig_settle(g);
	lane = &w->relay.lane[0];
	choices = g->env.stats.choices;
}

/* Reads what has come at the other end. */
static void swallow(struct wire *w)
{
	static char bytes[65536];

	while (recv(w->peer[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

/* Turns until the lane has delivered @to bytes in all. */
static void deliver(struct rig *g, struct wire *w, uint64_t to)
{
	await_acked(w->peer[0]);
	while (lane->delivered < to) {
		rig_turn(g);
		swallow(w);
	}
	ck_assert_uint_eq(lane->read, to);
}

/* The next @size bytes pass, all there before the relay looks. It looks again
 * when it has read its share. */
static void pass(struct rig *g, struct wire *w, size_t size)
{
	uint64_t at = lane->read;

	say(w->peer[0], 1, at, size);
	deliver(g, w, at + size);
}

/* The same in fragments of 700 bytes. What one thread sends lies side by side
 * in memory, and what lies side by side shares a slot: so there is always
 * something else in between. */
static void pass_in_fragments(struct rig *g, struct wire *w, unsigned fragments)
{
	uint64_t at = lane->read;
	int other[2];

	tcp_pair(other);
	peer_nodelay(other[0]);
	for (unsigned n = 0; n < fragments; n++) {
		say(w->peer[0], 1, at + n * 700, 700);
		say(other[0], 2, 0, 100);
		hear(other[1], 2, 0, 100);
	}
	close(other[0]);
	close(other[1]);
	deliver(g, w, at + fragments * 700);
}

static void close_auto(struct rig *g, struct wire *w)
{
	wire_hang_up(w);
	rig_finish(g, w);
	rig_close(g);
}

START_TEST(messages_go_by_buffer)
{
	struct wire w;
	struct rig g;

	open_auto(&g, &w);
	for (int n = 0; n < 50; n++)
		pass(&g, &w, 100 + (size_t)n * 70);
	ck_assert_uint_eq(lane->by_pipe, 0);
	ck_assert_uint_eq(counter_read(&g.env.stats.pipes_lent), 0);
	close_auto(&g, &w);
}
END_TEST

START_TEST(bulk_goes_by_pipe_after_a_few_full_buffers)
{
	struct wire w;
	struct rig g;
	uint64_t before;

	open_auto(&g, &w);
	pass(&g, &w, BULK);
	ck_assert_uint_ge(lane->delivered - lane->by_pipe, 2 * BUF_SIZE);
	ck_assert_uint_gt(lane->by_pipe, 0);
	ck_assert_uint_eq(counter_read(&choices[CHOICE_bulk]), 1);
	before = lane->delivered - lane->by_pipe;
	for (int n = 0; n < 5; n++)
		pass(&g, &w, 100000);
	ck_assert_uint_eq(lane->delivered - lane->by_pipe, before);
	ck_assert_uint_eq(counter_read(&choices[CHOICE_bulk]), 1);
	/* the other lane has a past of its own */
	ck_assert(!w.relay.lane[1].use_pipe);
	close_auto(&g, &w);
}
END_TEST

START_TEST(one_full_buffer_among_messages_changes_nothing)
{
	struct wire w;
	struct rig g;

	open_auto(&g, &w);
	for (int n = 0; n < 5; n++) {
		pass(&g, &w, BUF_SIZE);
		pass(&g, &w, 1000);
	}
	ck_assert_uint_eq(lane->by_pipe, 0);
	ck_assert_uint_eq(counter_read(&choices[CHOICE_bulk]), 0);
	close_auto(&g, &w);
}
END_TEST

/* Small messages and 64 KiB at once, in turn: it does not go to and fro. */
START_TEST(a_lane_that_has_a_little_of_both_stays_on_buffers)
{
	unsigned long changes, before = 0;
	struct wire w;
	struct rig g;

	open_auto(&g, &w);
	for (int n = 0; n < 16; n++) {
		if (n == 10)
			before = counter_read(&choices[CHOICE_bulk]);
		pass(&g, &w, 5 * BUF_SIZE);
		for (int k = 0; k < 5; k++)
			pass(&g, &w, 1000);
	}
	changes = counter_read(&choices[CHOICE_bulk]);
	ck_assert_uint_ge(changes, 1);
	ck_assert_uint_le(changes, 5);
	ck_assert_uint_eq(changes, before); /* and then never */
	ck_assert_uint_eq(counter_read(&choices[CHOICE_small]), changes);
	close_auto(&g, &w);
}
END_TEST

/* What was worth it makes it no warier. */
START_TEST(much_bulk_among_messages_goes_by_pipe_each_time)
{
	struct wire w;
	struct rig g;

	open_auto(&g, &w);
	for (int n = 0; n < 6; n++) {
		for (int k = 0; k < 16; k++)
			pass(&g, &w, 5 * BUF_SIZE);
		ck_assert(lane->use_pipe);
		for (int k = 0; k < 5; k++)
			pass(&g, &w, 1000);
		ck_assert(!lane->use_pipe);
	}
	close_auto(&g, &w);
}
END_TEST

START_TEST(messages_after_bulk_go_by_buffer_again)
{
	struct wire w;
	struct rig g;
	uint64_t by_pipe;

	open_auto(&g, &w);
	pass(&g, &w, BULK);
	pass(&g, &w, 1000);
	pass(&g, &w, 100000); /* one small one in between is nothing */
	ck_assert_uint_eq(counter_read(&choices[CHOICE_small]), 0);
	for (int n = 0; n < 10; n++)
		pass(&g, &w, 1000);
	ck_assert_uint_eq(counter_read(&choices[CHOICE_small]), 1);
	by_pipe = lane->by_pipe;
	for (int n = 0; n < 10; n++)
		pass(&g, &w, 1000);
	ck_assert_uint_eq(lane->by_pipe, by_pipe);
	pass(&g, &w, BULK);
	ck_assert_uint_gt(lane->by_pipe, by_pipe);
	ck_assert_uint_eq(counter_read(&choices[CHOICE_bulk]), 2);
	close_auto(&g, &w);
}
END_TEST

/* K1: each segment takes a slot, so the pipe is full with little inside. */
START_TEST(bulk_in_small_fragments_goes_by_buffer)
{
	struct wire w;
	struct rig g;
	uint64_t by_pipe;

	open_auto(&g, &w);
	pass(&g, &w, BULK);
	ck_assert(lane->use_pipe);
	for (int n = 0; n < 3 && lane->use_pipe; n++)
		pass_in_fragments(&g, &w, 230);
	support_note("%lu times small, %lu times thin",
		     (unsigned long)counter_read(&choices[CHOICE_small]),
		     (unsigned long)counter_read(&choices[CHOICE_thin]));
	ck_assert(!lane->use_pipe);
	if (counter_read(&choices[CHOICE_thin])) {
		by_pipe = lane->by_pipe;
		pass(&g, &w, BULK); /* not yet tried again */
		ck_assert_uint_eq(lane->by_pipe, by_pipe);
		ck_assert_uint_gt(lane->no_pipe_before, lane->read);
		ck_assert_uint_le(lane->no_pipe_before, lane->read + AGAIN);
		w.relay.lane[0].no_pipe_before = lane->read; /* so much later */
		pass(&g, &w, BULK);
		ck_assert_uint_gt(lane->by_pipe, by_pipe);
	}
	close_auto(&g, &w);
}
END_TEST

/* What is counted is a change, not each time that it comes to the same. */
START_TEST(a_choice_that_cannot_be_had_is_counted_once)
{
	struct wire w;
	struct rig g;

	open_auto(&g, &w);
	w.relay.lane[0].no_pipe = true;
	for (int n = 0; n < 5; n++)
		pass(&g, &w, BULK);
	ck_assert_uint_eq(lane->by_pipe, 0);
	ck_assert_uint_le(counter_read(&choices[CHOICE_bulk]), 1);
	close_auto(&g, &w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("choose");
	TCase *tc = support_case(s, "choose");

	tcase_add_test(tc, messages_go_by_buffer);
	tcase_add_test(tc, bulk_goes_by_pipe_after_a_few_full_buffers);
	tcase_add_test(tc, one_full_buffer_among_messages_changes_nothing);
	tcase_add_test(tc, a_lane_that_has_a_little_of_both_stays_on_buffers);
	tcase_add_test(tc, much_bulk_among_messages_goes_by_pipe_each_time);
	tcase_add_test(tc, messages_after_bulk_go_by_buffer_again);
	tcase_add_test(tc, bulk_in_small_fragments_goes_by_buffer);
	tcase_add_test(tc, a_choice_that_cannot_be_had_is_counted_once);
	return support_main(s);
}
