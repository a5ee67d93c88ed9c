/* SPDX-License-Identifier: MIT */
/*
 * What is the ring's own: who waits in it, what is late, what is full. What it
 * does to bytes and ends is tested with the other modes. _i: lanes wait in the
 * ring (multishot).
 *
 * It is compiled in here, to look inside and to make completions up.
 */
#include "../../src/relay/uring.c" /* its own header first */
#include "../../src/relay/uring_ride.c"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "unit/ring.h"

static int refused_ring, refused_buffers, refused_bell;

int __real_io_uring_queue_init_params(unsigned n, struct io_uring *ring,
				      struct io_uring_params *p);
int __wrap_io_uring_queue_init_params(unsigned n, struct io_uring *ring,
				      struct io_uring_params *p);
int __real_io_uring_register_buf_ring(struct io_uring *ring,
				      struct io_uring_buf_reg *reg, unsigned f);
int __wrap_io_uring_register_buf_ring(struct io_uring *ring,
				      struct io_uring_buf_reg *reg, unsigned f);

int __real_io_uring_register_eventfd(struct io_uring *ring, int fd);
int __wrap_io_uring_register_eventfd(struct io_uring *ring, int fd);

int __wrap_io_uring_queue_init_params(unsigned n, struct io_uring *ring,
				      struct io_uring_params *p)
{
	return refused_ring ? refused_ring
			    : __real_io_uring_queue_init_params(n, ring, p);
}

int __wrap_io_uring_register_buf_ring(struct io_uring *ring,
				      struct io_uring_buf_reg *reg, unsigned f)
{
	return refused_buffers ? refused_buffers
			       : __real_io_uring_register_buf_ring(ring, reg, f);
}

int __wrap_io_uring_register_eventfd(struct io_uring *ring, int fd)
{
	return refused_bell ? refused_bell
			    : __real_io_uring_register_eventfd(ring, fd);
}

START_TEST(messages_pass_and_only_multishot_waits_in_the_ring)
{
	struct wire w;
	struct rig g;

	ring_open(&g, _i);
	ring_lay(&g, &w, _i);
	for (unsigned n = 1; n < 100; n++)
		ring_pass(&g, &w, n * 100, 100);
	ck_assert_uint_eq(counter_read(&g.env.tally.recv.calls), 200);
	for (int i = 0; i < 2; i++)
		shutdown(w.peer[i], SHUT_WR);
	rig_finish(&g, &w);
	ck_assert(w.clean);
	rig_close(&g);
}
END_TEST

/* A request in flight holds the socket: no RST would come of the close. */
START_TEST(a_relay_that_is_stopped_is_done_when_nothing_is_in_flight)
{
	struct wire w;
	struct rig g;

	ring_open(&g, _i);
	ring_lay(&g, &w, _i);
	relay_stop(&w.relay);
	rig_finish(&g, &w);
	for (int i = 0; i < 2; i++) {
		ck_assert_ptr_null(w.relay.lane[i].ride);
		ck_assert_int_eq(peer_expect_reset(w.peer[i], SOON_MS), 0);
	}
	rig_close(&g);
}
END_TEST

static void stop_it(void *arg)
{
	relay_stop(arg);
}

/* Bytes are there, and are asked for, in the turn that ends it. */
START_TEST(a_relay_that_is_stopped_with_bytes_on_the_way_loses_count_of_none)
{
	struct wire w;
	struct rig g;

	ring_open(&g, _i);
	ring_lay(&g, &w, _i);
	for (unsigned i = 0; i < 2; i++)
		say(w.peer[i], i, 100, 3 * RIG_BUF_SIZE);
	rig_ambush(&g, stop_it, &w.relay);
	rig_finish(&g, &w);
	rig_close(&g); /* adds up what went in and out */
}
END_TEST

/* The write that a lane begins in the run that ends it is over before the end: its
 * completion asks for a run of a relay that is done. */
START_TEST(a_relay_that_ends_with_a_write_in_flight_is_not_run_again)
{
	struct wire w;
	struct rig g;

	ring_open(&g, _i);
	ring_lay(&g, &w, _i);
	ring_shut_sink(&w);
	say(w.peer[0], 0, 100, 1000);
	await_acked(w.peer[0]);
	rig_settle(&g);
	ck_assert_uint_eq(lane_holds(&w.relay.lane[0]), 1000);
	ring_open_sink(&g, &w);
	relay_stop(&w.relay);
	rig_finish(&g, &w);
	ck_assert_uint_eq(w.relay.lane[0].delivered, 1100);
	rig_close(&g);
}
END_TEST

/* As if the kernel had told of something that is long over. */
static void complete_late(struct uring *u, uint64_t name)
{
	struct io_uring_sqe *sqe = uring_sqe(u);

	ck_assert_ptr_nonnull(sqe);
	io_uring_prep_nop(sqe);
	io_uring_sqe_set_data64(sqe, name);
}

START_TEST(late_completions_reach_neither_the_dead_nor_who_has_their_place)
{
	struct wire dead, heir;
	uint64_t names[2][3];
	struct rig g;

	ring_open(&g, _i);
	ring_lay(&g, &dead, _i);
	for (int i = 0; i < 2; i++)
		for (int op = OP_RECV; op <= OP_SEND; op++)
			names[i][op] =
				name_of(dead.relay.lane[i].ride, (enum op)op);
	relay_stop(&dead.relay);
	rig_finish(&g, &dead);
	for (int again = 0; again < 2; again++) {
		for (int i = 0; i < 2; i++)
			for (int op = OP_RECV; op <= OP_SEND; op++)
				complete_late(g.env.uring, names[i][op]);
		complete_late(g.env.uring, (uint64_t)1 << 31);
		rig_settle(&g);
		if (again)
			break;
		/* 0 would be FIN to a receive, and an error to a send */
		ring_lay(&g, &heir, _i);
		ck_assert_uint_lt(heir.relay.lane[0].ride->at, 2);
		ck_assert_uint_lt(heir.relay.lane[1].ride->at, 2);
	}
	ck_assert_uint_eq(g.env.uring->n_rides, 2);
	ring_pass(&g, &heir, 100, 100);
	wire_hang_up(&heir);
	rig_finish(&g, &heir);
	rig_close(&g);
}
END_TEST

/* Says and turns until nothing is taken any more. Return: how much was said. */
static uint64_t stuff(struct rig *g, struct wire *w, uint64_t at)
{
	uint64_t said = at, before;
	char buf[3000];
	ssize_t n;

	do {
		before = said;
		for (int i = 0; i < 20; i++) {
			stamp_fill(buf, 0, said, sizeof(buf));
			n = send(w->peer[0], buf, sizeof(buf), MSG_DONTWAIT);
			said += n > 0 ? (uint64_t)n : 0;
		}
		rig_turn(g);
		if (said == before)
			rig_settle(g);
	} while (said > before);
	return said;
}

START_TEST(a_sink_that_stalls_stops_its_source_within_a_few_buffers)
{
	uint64_t most = _i ? STOCK + AHEAD : 2, said, heard = 100;
	struct wire w;
	struct rig g;

	ring_open(&g, _i);
	ring_lay(&g, &w, _i);
	said = stuff(&g, &w, 100);
	ck_assert_uint_le(counter_read(&g.env.tally.buffers_now), most);
	ck_assert_uint_gt(said,
			  w.relay.lane[0].read + uring_ahead(&w.relay.lane[0]));
	ck_assert(!w.relay.lane[0].ride->waiting);
	while (heard < said) {
		size_t n = min_size(1000, said - heard);

		while (peer_wait(w.peer[1], POLLIN, 0) <= 0)
			rig_turn(&g);
		n = min_size(n, (size_t)peer_unread(w.peer[1]));
		hear(w.peer[1], 0, heard, n);
		heard += n;
		rig_turn(&g);
	}
	ring_pass(&g, &w, said, 0);
	wire_hang_up(&w);
	rig_finish(&g, &w);
	rig_close(&g);
}
END_TEST

/* Few words at a time: each takes a buffer, however short it is. */
START_TEST(a_sink_that_stalls_is_not_told_a_buffer_a_word)
{
	struct wire w;
	struct rig g;
	uint64_t at;

	ring_open(&g, _i);
	ring_lay(&g, &w, _i);
	at = stuff(&g, &w, 100);
	(void)at;
	for (int n = 0; n < 100; n++) {
		(void)send(w.peer[0], "x", 1, MSG_DONTWAIT);
		rig_turn(&g);
	}
	ck_assert_uint_le(counter_read(&g.env.tally.buffers_now),
			  _i ? STOCK + AHEAD : 2);
	wire_hang_up(&w);
	rig_finish(&g, &w);
	rig_close(&g);
}
END_TEST

START_TEST(a_multishot_receive_is_stopped_when_a_few_buffers_wait)
{
	struct wire w;
	struct rig g;

	ring_open(&g, true);
	ring_lay(&g, &w, true);
	ring_shut_sink(&w);
	for (unsigned n = 0; n < 20; n++) {
		say(w.peer[0], 0, 100 + n, 1);
		await_acked(w.peer[0]);
		rig_settle(&g);
	}
	ck_assert(!w.relay.lane[0].ride->waiting);
	ck_assert_uint_le(counter_read(&g.env.tally.buffers_now), AHEAD + 1);
	ring_open_sink(&g, &w);
	rig_settle(&g);
	hear(w.peer[1], 0, 100, 20);
	ring_pass(&g, &w, 120, 100);
	wire_hang_up(&w);
	rig_finish(&g, &w);
	rig_close(&g);
}
END_TEST

START_TEST(a_multishot_receive_is_stopped_when_it_has_filled_a_buffer)
{
	struct wire w;
	struct rig g;

	ring_open(&g, true);
	ring_lay(&g, &w, true);
	ring_shut_sink(&w);
	say(w.peer[0], 0, 100, 2 * RIG_BUF_SIZE);
	await_acked(w.peer[0]);
	rig_settle(&g);
	ck_assert_uint_lt(w.relay.lane[0].ride->n_ahead, AHEAD);
	ck_assert(!w.relay.lane[0].ride->waiting);
	ring_open_sink(&g, &w);
	rig_settle(&g);
	hear(w.peer[1], 0, 100, 2 * RIG_BUF_SIZE);
	wire_hang_up(&w);
	rig_finish(&g, &w);
	rig_close(&g);
}
END_TEST

#define MANY 140

/* More than the queue has room for in one turn, and more than there are buffers
 * in stock. */
START_TEST(more_at_once_than_there_is_room_for_all_get_through)
{
	static struct wire w[MANY];
	struct rig g;

	ring_open(&g, _i);
	for (unsigned n = 0; n < MANY; n++)
		wire_lay(&g, &w[n]);
	rig_settle(&g);
	for (unsigned at = 0; at < 3000; at += 1000) {
		for (unsigned n = 0; n < 2 * MANY; n++)
			say(w[n / 2].peer[n % 2], n, at, 1000);
		rig_settle(&g);
		for (unsigned n = 0; n < 2 * MANY; n++)
			hear(w[n / 2].peer[!(n % 2)], n, at, 1000);
	}
	/* nobody had to wait for a timer */
	ck_assert_uint_eq(counter_read(&g.env.tally.no_memory), 0);
	for (unsigned n = 0; n < MANY; n++)
		wire_hang_up(&w[n]);
	for (unsigned n = 0; n < MANY; n++)
		rig_finish(&g, &w[n]);
	rig_close(&g);
}
END_TEST

START_TEST(a_half_close_lets_the_answer_through)
{
	struct wire w;
	struct rig g;

	ring_open(&g, _i);
	ring_lay(&g, &w, _i);
	say(w.peer[0], 0, 100, 50000);
	shutdown(w.peer[0], SHUT_WR);
	rig_settle(&g);
	hear(w.peer[1], 0, 100, 50000);
	ck_assert_int_eq(peer_expect_eof(w.peer[1], SOON_MS), 0);
	say(w.peer[1], 1, 100, 50000);
	rig_settle(&g);
	hear(w.peer[0], 1, 100, 50000);
	shutdown(w.peer[1], SHUT_WR);
	rig_finish(&g, &w);
	ck_assert(w.clean);
	rig_close(&g);
}
END_TEST

START_TEST(a_reset_is_a_reset_behind_the_bytes_before_it)
{
	struct wire w;
	struct rig g;

	ring_open(&g, _i);
	ring_lay(&g, &w, _i);
	say(w.peer[0], 0, 100, 5000);
	await_acked(w.peer[0]);
	peer_reset(w.peer[0]);
	w.peer[0] = -1;
	rig_settle(&g);
	hear(w.peer[1], 0, 100, 5000);
	rig_finish(&g, &w);
	ck_assert_int_eq(peer_expect_reset(w.peer[1], SOON_MS), 0);
	ck_assert_int_eq(w.how[0], RELAY_END_RESET);
	rig_close(&g);
}
END_TEST

static struct wire *to_reset;

static void reset_it(struct job *j)
{
	peer_reset(to_reset->peer[0]);
	to_reset->peer[0] = -1;
	ck_assert_int_gt(peer_wait(to_reset->relay.side[0].watch.fd, POLLRDHUP,
				   SOON_MS),
			 0);
}

/* The reset comes between two calls: in the second the send is the first to find
 * it, and the receive that waits gets 0, as for a FIN (K20). */
START_TEST(a_reset_that_a_send_has_eaten_is_no_fin_to_the_receive)
{
	struct job job = { .fn = reset_it };
	struct wire w;
	struct rig g;

	ring_open(&g, true);
	ring_lay(&g, &w, true);
	to_reset = &w;
	list_init(&job.node);
	say(w.peer[1], 1, 100, 10);
	await_acked(w.peer[1]);
	loop_soon(&g.loop, &job);
	rig_finish(&g, &w);
	ck_assert_int_eq(w.how[0], RELAY_END_RESET);
	ck_assert_int_eq(w.how[1], RELAY_END_OPEN);
	ck_assert_int_ne(w.relay.lane[0].state, LANE_SHUT);
	ck_assert_int_eq(peer_expect_reset(w.peer[1], SOON_MS), 0);
	rig_close(&g);
}
END_TEST

/* Nothing but the urgent byte comes, and the edge tells of it before the ring
 * reads: it is canceled in time. */
START_TEST(an_urgent_byte_that_an_edge_tells_of_in_time_stays_urgent)
{
	struct wire w;
	struct rig g;
	char c, want;
	int at;

	ring_open(&g, _i);
	ring_lay(&g, &w, _i);
	for (uint64_t n = 100; n < 103; n++) {
		stamp_fill(&want, 0, n, 1);
		ck_assert_int_eq(send(w.peer[0], &want, 1, MSG_OOB), 1);
		await_acked(w.peer[0]);
		rig_settle(&g);
		ck_assert_int_gt(peer_wait(w.peer[1], POLLPRI, SOON_MS), 0);
		ck_assert_int_eq(ioctl(w.peer[1], SIOCATMARK, &at), 0);
		ck_assert_int_eq(at, 1);
		ck_assert_int_eq(recv(w.peer[1], &c, 1, MSG_OOB), 1);
		ck_assert_int_eq(c, want);
	}
	ck_assert_ptr_null(w.relay.lane[0].ride); /* the pump's for good */
	ring_pass(&g, &w, 103, 100);
	wire_hang_up(&w);
	rig_finish(&g, &w);
	rig_close(&g);
}
END_TEST

/* One completion more than there is room for is kept by the kernel, which tells
 * nobody but who looks. */
START_TEST(more_completions_than_there_is_room_for_all_come)
{
	struct wire w;
	struct rig g;

	ring_open(&g, _i);
	ring_lay(&g, &w, _i);
	for (unsigned at = 100; at < 400; at += 100) {
		for (int n = 0; n < COMPLETIONS + 1000; n++)
			complete_late(g.env.uring, UINT64_MAX);
		say(w.peer[0], 0, at, 100);
		await_acked(w.peer[0]);
		g.loop.flush_due = false; /* with the receive, and behind */
		rig_settle(&g);
		hear(w.peer[1], 0, at, 100);
	}
	wire_hang_up(&w);
	rig_finish(&g, &w);
	rig_close(&g);
}
END_TEST

static const int refusals[] = { -EPERM, -ENOSYS, -ENOMEM, -EMFILE, -EINVAL };

static void expect_refused(struct rig *g, int multishot, int err)
{
	ck_assert_int_eq(uring_open(&g->env, multishot), err);
	ck_assert_ptr_null(g->env.uring);
	ck_assert_ptr_null(g->loop.flush);
}

/* Neither the ring, nor its buffers, nor what it rings. */
START_TEST(a_kernel_that_refuses_leaves_nothing_behind)
{
	struct rig g;

	rig_open(&g, RELAY_COPY);
	for (unsigned i = 0; i < array_size(refusals); i++) {
		refused_ring = refusals[i];
		expect_refused(&g, _i, refused_ring);
		refused_ring = 0;
		refused_buffers = refusals[i];
		expect_refused(&g, _i, refused_buffers);
		refused_buffers = 0;
		refused_bell = refusals[i];
		if (_i)
			expect_refused(&g, _i, refused_bell);
		refused_bell = 0;
	}
	rig_close(&g);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("uring");
	TCase *tc = support_case(s, "uring");
	static const TTest *const *const tests[] = {
		&messages_pass_and_only_multishot_waits_in_the_ring,
		&a_relay_that_is_stopped_is_done_when_nothing_is_in_flight,
		&a_relay_that_is_stopped_with_bytes_on_the_way_loses_count_of_none,
		&a_relay_that_ends_with_a_write_in_flight_is_not_run_again,
		&late_completions_reach_neither_the_dead_nor_who_has_their_place,
		&a_sink_that_stalls_stops_its_source_within_a_few_buffers,
		&a_sink_that_stalls_is_not_told_a_buffer_a_word,
		&more_at_once_than_there_is_room_for_all_get_through,
		&a_half_close_lets_the_answer_through,
		&a_reset_is_a_reset_behind_the_bytes_before_it,
		&an_urgent_byte_that_an_edge_tells_of_in_time_stays_urgent,
		&more_completions_than_there_is_room_for_all_come,
		&a_kernel_that_refuses_leaves_nothing_behind,
	};

	if (rig_modes() > RELAY_URING)
		for (unsigned i = 0; i < array_size(tests); i++)
			tcase_add_loop_test(tc, *tests[i], 0, 2);
	if (rig_modes() > RELAY_URING) {
		tcase_add_test(
			tc,
			a_reset_that_a_send_has_eaten_is_no_fin_to_the_receive);
		tcase_add_test(
			tc,
			a_multishot_receive_is_stopped_when_a_few_buffers_wait);
		tcase_add_test(
			tc,
			a_multishot_receive_is_stopped_when_it_has_filled_a_buffer);
	}
	return support_main(s);
}
