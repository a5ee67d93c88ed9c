/* SPDX-License-Identifier: MIT */
/*
 * A kernel without memory for what the ring asks of it: all bytes arrive once it
 * has some; nothing hangs, and nothing asks all the time until then; and it is
 * counted. What cannot wait, an end, does not. See ring_shim.h.
 *
 * src/relay/uring/ is compiled in here, to look inside.
 */
#include "../../src/relay/uring/buf_ring.c"
#include "../../src/relay/uring/uring_lane.c"
#include "../../src/relay/uring/uring.c"

#include "unit/ring.h"
#include "unit/ring_shim.h"

/* For so long there is no memory, and for some turns on a busy machine; who spins
 * makes thousands. */
#define SPELL_MS    200
#define LEAST_TURNS 12
#define MOST_TURNS  150

static uint64_t no_memory_so_far(const struct rig *g)
{
	return counter_read(&g->env.stats.no_memory);
}

/* Turns for a while, in which nobody may spin. */
static void sit_out(struct rig *g)
{
	int64_t end = now_ms() + SPELL_MS;
	uint64_t before = g->loop.turns;

	while (now_ms() < end || g->loop.turns - before < LEAST_TURNS)
		ck_assert_int_eq(loop_turn(&g->loop, 10), 0);
	ck_assert_uint_lt(g->loop.turns - before, MOST_TURNS);
}

static void have_memory(void)
{
	shim = (struct shim){ .buffers = -1 };
}

/* Turns until @peer may hear @n bytes, and hears them. */
static void hear_in_time(struct rig *g, int peer, unsigned stream, uint64_t at,
			 size_t n)
{
	int64_t end = now_ms() + SOON_MS;

	while (peer_unread(peer) < (int)n) {
		ck_assert_msg(now_ms() < end, "%d bytes of %zu have come",
			      peer_unread(peer), n);
		ck_assert_int_eq(loop_turn(&g->loop, 10), 0);
	}
	hear(peer, stream, at, n);
}

static void pass_in_time(struct rig *g, struct wire *w, uint64_t at)
{
	for (unsigned i = 0; i < 2; i++)
		say(w->peer[i], i, at, 100);
	for (unsigned i = 0; i < 2; i++)
		hear_in_time(g, w->peer[!i], i, at, 100);
}

static void end_well(struct rig *g, struct wire *w)
{
	for (int i = 0; i < 2; i++)
		shutdown(w->peer[i], SHUT_WR);
	rig_finish(g, w);
	ck_assert(w->clean);
}

static const struct {
	enum op op;
	int error;
} failures[] = {
	{ OP_RECV, -ENOMEM },
	{ OP_RECV, -ENOBUFS },
	{ OP_SEND, -ENOMEM },
	{ OP_SEND, -ENOBUFS },
};

START_TEST(a_request_that_fails_for_want_of_memory_is_made_again_in_a_while)
{
	struct wire w;
	struct rig g;

	ring_open(&g);
	wire_lay(&g, &w);
	rig_settle(&g);
	shim.op = (int)failures[_i].op;
	shim.error = failures[_i].error;
	shim.times = SHIM_FOR_EVER;
	say(w.peer[0], 0, 0, 100);
	sit_out(&g);
	ck_assert_uint_gt(shim.failed, 2);
	ck_assert_uint_eq(no_memory_so_far(&g), shim.failed);
	have_memory();
	hear_in_time(&g, w.peer[1], 0, 0, 100);
	say(w.peer[1], 1, 0, 100);
	hear_in_time(&g, w.peer[0], 1, 0, 100);
	for (int i = 0; i < 2; i++)
		ring_lane(&w, i);
	pass_in_time(&g, &w, 100);
	end_well(&g, &w);
	rig_close(&g);
}
END_TEST

static void renew_edges(struct rig *g, struct wire *w)
{
	for (int i = 0; i < 2; i++) {
		struct watch *side = &w->relay.side[i].watch;
		struct epoll_event ev = { .events = LOOP_SOCKET,
					  .data.ptr = side };

		ck_assert_int_eq(
			epoll_ctl(g->loop.epfd, EPOLL_CTL_MOD, side->fd, &ev), 0);
	}
}

/* EAGAIN is a promise of an edge. */
START_TEST(a_request_that_comes_to_nothing_is_made_again_when_an_edge_tells)
{
	struct wire w;
	struct rig g;

	ring_open(&g);
	wire_lay(&g, &w);
	rig_settle(&g);
	shim.op = _i ? OP_SEND : OP_RECV;
	shim.error = -EAGAIN;
	shim.times = 1;
	say(w.peer[0], 0, 0, 100);
	sit_out(&g);
	ck_assert_uint_eq(shim.failed, 1);
	renew_edges(&g, &w);
	hear_in_time(&g, w.peer[1], 0, 0, 100);
	ck_assert_uint_eq(no_memory_so_far(&g), 0);
	have_memory();
	pass_in_time(&g, &w, 100);
	end_well(&g, &w);
	rig_close(&g);
}
END_TEST

static const int refusals[] = { -EAGAIN, -EBUSY, -ENOMEM };

START_TEST(a_kernel_that_takes_no_request_is_asked_again_in_a_while)
{
	struct wire w;
	struct rig g;

	ring_open(&g);
	ring_lay(&g, &w);
	shim.refusal = refusals[_i];
	for (unsigned i = 0; i < 2; i++)
		say(w.peer[i], i, 100, 1000);
	sit_out(&g);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(peer_unread(w.peer[i]), 0);
	ck_assert_uint_gt(shim.refusals, 2);
	ck_assert_uint_eq(no_memory_so_far(&g), shim.refusals);
	have_memory();
	for (unsigned i = 0; i < 2; i++)
		hear_in_time(&g, w.peer[!i], i, 100, 1000);
	pass_in_time(&g, &w, 1100);
	end_well(&g, &w);
	rig_close(&g);
}
END_TEST

#define MANY 40

START_TEST(a_kernel_that_takes_one_request_a_call_takes_all_in_the_end)
{
	static struct wire w[MANY];
	struct rig g;

	ring_open(&g);
	for (unsigned n = 0; n < MANY; n++)
		wire_lay(&g, &w[n]);
	rig_settle(&g);
	shim.takes = 1;
	for (unsigned at = 0; at < 300; at += 100) {
		for (unsigned n = 0; n < 2 * MANY; n++)
			say(w[n / 2].peer[n % 2], n, at, 100);
		for (unsigned n = 0; n < 2 * MANY; n++)
			hear_in_time(&g, w[n / 2].peer[!(n % 2)], n, at, 100);
	}
	/* nobody had to wait for a timer */
	ck_assert_uint_eq(no_memory_so_far(&g), 0);
	for (unsigned n = 0; n < MANY; n++)
		end_well(&g, &w[n]);
	have_memory();
	rig_close(&g);
}
END_TEST

/* Nothing more may be asked for, and nothing of what was is taken. */
static void choke(struct rig *g)
{
	shim.refusal = -EAGAIN;
	ring_crowd(g, 0);
}

START_TEST(a_receive_that_has_no_room_in_the_queue_waits)
{
	struct wire w;
	struct rig g;

	ring_open(&g);
	ring_lay(&g, &w);
	choke(&g);
	say(w.peer[0], 0, 100, 1000);
	sit_out(&g);
	ck_assert_uint_gt(no_memory_so_far(&g), 2);
	ck_assert_int_eq(peer_unread(w.peer[1]), 0);
	have_memory();
	hear_in_time(&g, w.peer[1], 0, 100, 1000);
	ring_pass(&g, &w, 1100, 100);
	end_well(&g, &w);
	rig_close(&g);
}
END_TEST

START_TEST(a_send_that_has_no_room_in_the_queue_waits)
{
	struct wire w;
	struct rig g;

	ring_open(&g);
	ring_lay(&g, &w);
	ring_hold(&g, &w, 0, 100, 1000);
	choke(&g);
	ring_open_sink(&w, 0);
	sit_out(&g);
	ck_assert_uint_gt(no_memory_so_far(&g), 2);
	have_memory();
	hear_in_time(&g, w.peer[1], 0, 100, 1000);
	ring_pass(&g, &w, 1100, 100);
	end_well(&g, &w);
	rig_close(&g);
}
END_TEST

START_TEST(urgent_data_goes_on_though_there_is_no_room_in_the_queue)
{
	struct wire w;
	struct rig g;
	int one = 1;
	char c;

	ring_open(&g);
	ring_lay(&g, &w);
	ck_assert_int_eq(setsockopt(w.peer[1], SOL_SOCKET, SO_OOBINLINE, &one,
				    sizeof(one)),
			 0);
	choke(&g);
	stamp_fill(&c, 0, 100, 1);
	ck_assert_int_eq(send(w.peer[0], &c, 1, MSG_OOB), 1);
	say(w.peer[0], 0, 101, 99);
	sit_out(&g);
	have_memory();
	hear_in_time(&g, w.peer[1], 0, 100, 100);
	ck_assert_ptr_null(w.relay.lane[0].own);
	ring_pass(&g, &w, 200, 100);
	end_well(&g, &w);
	rig_close(&g);
}
END_TEST

/* Its bytes were never sent, and never are. */
START_TEST(a_relay_that_is_stopped_takes_back_the_send_that_is_not_taken)
{
	struct wire w, heir;
	struct rig g;

	ring_open(&g);
	ring_lay(&g, &w);
	ring_hold(&g, &w, 0, 100, 50);
	shim.refusal = -EAGAIN;
	ring_open_sink(&w, 0);
	rig_turns(&g, 3);
	ck_assert(ring_lane(&w, 0)->sending);
	relay_stop(&w.relay);
	rig_finish(&g, &w);
	ck_assert_uint_eq(counter_read(&g.env.stats.dropped[DROP_stopped]), 50);
	have_memory();
	ck_assert_int_eq(peer_expect_reset(w.peer[1], SOON_MS), 0);
	ring_lay(&g, &heir);
	end_well(&g, &heir);
	rig_close(&g);
}
END_TEST

START_TEST(a_relay_that_is_stopped_takes_back_the_receive_that_is_not_taken)
{
	struct wire w, heir;
	struct rig g;

	ring_open(&g);
	wire_lay(&g, &w);
	rig_settle(&g);
	shim.refusal = -EAGAIN;
	say(w.peer[0], 0, 0, 50);
	await_acked(w.peer[0]);
	rig_turns(&g, 3);
	ck_assert(ring_lane(&w, 0)->receiving);
	relay_stop(&w.relay);
	rig_finish(&g, &w);
	have_memory();
	ring_lay(&g, &heir);
	end_well(&g, &heir);
	rig_close(&g);
}
END_TEST

START_TEST(a_ring_that_has_run_out_of_buffers_goes_on_with_a_single_one)
{
	uint64_t at = 100;
	struct wire w;
	struct buf_ring *br;
	struct rig g;

	ring_open(&g);
	ring_lay(&g, &w);
	br = &ring_of(&g)->buf_ring;
	shim.buffers = 0;
	for (; br->n_empty < br->n; at++) {
		say(w.peer[0], 0, at, 1);
		hear_in_time(&g, w.peer[1], 0, at, 1);
		rig_settle(&g);
	}
	say(w.peer[0], 0, at, 1);
	sit_out(&g);
	ck_assert_uint_gt(no_memory_so_far(&g), 2);
	ck_assert_int_eq(peer_unread(w.peer[1]), 0);
	for (int n = 0; n < 3; n++, at++) {
		shim.buffers = 1;
		hear_in_time(&g, w.peer[1], 0, at, 1);
		sit_out(&g);
		say(w.peer[0], 0, at + 1, 1);
	}
	have_memory();
	hear_in_time(&g, w.peer[1], 0, at, 1);
	say(w.peer[1], 1, 100, 100);
	hear_in_time(&g, w.peer[0], 1, 100, 100);
	end_well(&g, &w);
	rig_close(&g);
}
END_TEST

START_TEST(a_lane_for_which_the_ring_has_no_memory_copies)
{
	unsigned nth = 1 + (unsigned)_i;
	struct wire w, next;
	struct rig g;

	ring_open(&g);
	wire_plug(&g, &w);
	shim.allocation = nth;
	wire_start(&w);
	ck_assert_uint_eq(shim.allocation, 0);
	ck_assert_uint_eq(no_memory_so_far(&g), 1);
	ck_assert_int_eq(w.relay.lane[0].own != NULL, nth == 2);
	ck_assert_ptr_null(w.relay.lane[1].own);
	for (uint64_t at = 0; at < 1000; at += 100)
		ring_pass(&g, &w, at, 100);
	end_well(&g, &w);
	ring_lay(&g, &next);
	end_well(&g, &next);
	ck_assert_uint_eq(no_memory_so_far(&g), 1);
	rig_close(&g);
}
END_TEST

START_TEST(a_ring_without_memory_for_a_buffer_is_none)
{
	struct rig g;

	rig_open(&g, RELAY_COPY);
	shim.buffers = 0;
	ck_assert_int_eq(uring_open(&g.env), -ENOMEM);
	ck_assert_ptr_null(g.env.engine);
	ck_assert_ptr_null(g.loop.flush);
	have_memory();
	rig_close(&g);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("uring-memory");
	TCase *tc = support_case(s, "uring-memory");
	static const struct {
		const TTest *const *test;
		int times;
	} tests[] = {
		{ &a_request_that_fails_for_want_of_memory_is_made_again_in_a_while,
		  (int)array_size(failures) },
		{ &a_request_that_comes_to_nothing_is_made_again_when_an_edge_tells,
		  2 },
		{ &a_kernel_that_takes_no_request_is_asked_again_in_a_while,
		  (int)array_size(refusals) },
		{ &a_kernel_that_takes_one_request_a_call_takes_all_in_the_end,
		  1 },
		{ &a_receive_that_has_no_room_in_the_queue_waits, 1 },
		{ &a_send_that_has_no_room_in_the_queue_waits, 1 },
		{ &urgent_data_goes_on_though_there_is_no_room_in_the_queue, 1 },
		{ &a_relay_that_is_stopped_takes_back_the_send_that_is_not_taken,
		  1 },
		{ &a_relay_that_is_stopped_takes_back_the_receive_that_is_not_taken,
		  1 },
		{ &a_ring_that_has_run_out_of_buffers_goes_on_with_a_single_one,
		  1 },
		{ &a_lane_for_which_the_ring_has_no_memory_copies, 2 },
		{ &a_ring_without_memory_for_a_buffer_is_none, 1 },
	};

	if (rig_modes() > RELAY_URING)
		for (unsigned i = 0; i < array_size(tests); i++)
			tcase_add_loop_test(tc, *tests[i].test, 0,
					    tests[i].times);
	return support_main(s);
}
