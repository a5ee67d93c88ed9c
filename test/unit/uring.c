/* SPDX-License-Identifier: MIT */
/*
 * What is the ring's own: what is in its queue when a relay ends, what is full. What
 * it does to bytes and ends is tested with the other modes.
 *
 * It is compiled in here, to look inside.
 */
#include "../../src/relay/uring/buf_ring.c"
#include "../../src/relay/uring/uring_lane.c"
#include "../../src/relay/uring/uring.c"

#include <poll.h>
#include <sys/ioctl.h>

#include "unit/ring.h"

static int refused_ring, refused_buffers;

int __real_io_uring_queue_init_params(unsigned n, struct io_uring *ring,
				      struct io_uring_params *p);
int __wrap_io_uring_queue_init_params(unsigned n, struct io_uring *ring,
				      struct io_uring_params *p);
int __real_io_uring_register_buf_ring(struct io_uring *ring,
				      struct io_uring_buf_reg *reg, unsigned f);
int __wrap_io_uring_register_buf_ring(struct io_uring *ring,
				      struct io_uring_buf_reg *reg, unsigned f);

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

START_TEST(messages_pass_by_two_requests_each)
{
	struct wire w;
	struct rig g;

	ring_open(&g);
	ring_lay(&g, &w);
	for (unsigned n = 1; n < 100; n++)
		ring_pass(&g, &w, n * 100, 100);
	ck_assert_uint_eq(counter_read(&g.env.stats.recv.calls), 200);
	ck_assert_uint_eq(counter_read(&g.env.stats.send.calls), 200);
	for (int i = 0; i < 2; i++)
		shutdown(w.peer[i], SHUT_WR);
	rig_finish(&g, &w);
	ck_assert(w.clean);
	rig_close(&g);
}
END_TEST

START_TEST(a_relay_that_is_stopped_has_no_lane_on_the_ring_any_more)
{
	struct wire w;
	struct rig g;

	ring_open(&g);
	ring_lay(&g, &w);
	relay_stop(&w.relay);
	rig_finish(&g, &w);
	for (int i = 0; i < 2; i++) {
		ck_assert_ptr_null(w.relay.lane[i].own);
		ck_assert_int_eq(peer_expect_reset(w.peer[i], SOON_MS), 0);
	}
	rig_close(&g);
}
END_TEST

START_TEST(a_relay_that_is_stopped_counts_what_was_received_ahead)
{
	struct wire w;
	struct rig g;

	ring_open(&g);
	ring_lay(&g, &w);
	ring_shut_sink(&w, 0);
	say(w.peer[0], 0, 100, 3 * RIG_BUF_SIZE);
	await_acked(w.peer[0]);
	rig_settle(&g);
	ck_assert_uint_eq(lane_holds(&w.relay.lane[0]), RIG_BUF_SIZE);
	ck_assert_uint_eq(w.relay.lane[0].ahead, RIG_BUF_SIZE);
	relay_stop(&w.relay);
	rig_finish(&g, &w);
	ck_assert_uint_eq(w.relay.lane[0].read, 100 + 2 * RIG_BUF_SIZE);
	ck_assert_uint_eq(counter_read(&g.env.stats.dropped[DROP_stopped]),
			  2 * RIG_BUF_SIZE);
	rig_close(&g);
}
END_TEST

/* There is no room in the queue for its read, so that its write is over before the
 * end: that completion asks for a run of a relay that is done. */
START_TEST(a_relay_that_ends_when_its_write_is_over_is_not_run_again)
{
	struct wire w;
	struct rig g;

	ring_open(&g);
	ring_lay(&g, &w);
	ring_hold(&g, &w, 0, 100, 1000);
	ring_crowd(&g, 1);
	ring_open_sink(&w, 0);
	w.relay.side[1].watch.ready |= LOOP_READABLE | WATCH_UNREAD;
	relay_stop(&w.relay);
	rig_finish(&g, &w);
	ck_assert_uint_eq(w.relay.lane[0].delivered, 1100);
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

START_TEST(a_sink_that_stalls_stops_its_source_within_two_buffers)
{
	uint64_t said, heard = 100;
	struct wire w;
	struct rig g;

	ring_open(&g);
	ring_lay(&g, &w);
	said = stuff(&g, &w, 100);
	ck_assert_uint_le(counter_read(&g.env.stats.buffers_now), 2);
	ck_assert_uint_gt(said, w.relay.lane[0].read + w.relay.lane[0].ahead);
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

	ring_open(&g);
	ring_lay(&g, &w);
	at = stuff(&g, &w, 100);
	(void)at;
	for (int n = 0; n < 100; n++) {
		(void)send(w.peer[0], "x", 1, MSG_DONTWAIT);
		rig_turn(&g);
	}
	ck_assert_uint_le(counter_read(&g.env.stats.buffers_now), 2);
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

	ring_open(&g);
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
	ck_assert_uint_eq(counter_read(&g.env.stats.no_memory), 0);
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

	ring_open(&g);
	ring_lay(&g, &w);
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

	ring_open(&g);
	ring_lay(&g, &w);
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

/* epoll tells of the reset, and then the send is the first to find it: so a read
 * gets 0, as for a FIN (K20). */
START_TEST(a_reset_that_a_send_has_eaten_is_no_fin)
{
	struct wire w;
	struct rig g;

	ring_open(&g);
	ring_lay(&g, &w);
	ring_hold(&g, &w, 1, 100, 10);
	w.relay.side[0].watch.ready |= LOOP_WRITABLE;
	pump_run(&w.relay.job);
	ck_assert(ring_lane(&w, 1)->sending);
	peer_reset(w.peer[0]);
	w.peer[0] = -1;
	ck_assert_int_gt(peer_wait(w.relay.side[0].watch.fd, POLLRDHUP, SOON_MS),
			 0);
	rig_finish(&g, &w);
	ck_assert_int_eq(w.how[0], RELAY_END_RESET);
	ck_assert_int_eq(w.how[1], RELAY_END_OPEN);
	ck_assert_int_ne(w.relay.lane[0].state, LANE_SHUT);
	ck_assert_int_eq(peer_expect_reset(w.peer[1], SOON_MS), 0);
	rig_close(&g);
}
END_TEST

/* Another comes behind it when the lane is the pump's. */
START_TEST(an_urgent_byte_stays_urgent_and_its_lane_leaves_the_ring)
{
	struct wire w;
	struct rig g;
	char c, want;
	int at;

	ring_open(&g);
	ring_lay(&g, &w);
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
	ck_assert_ptr_null(w.relay.lane[0].own); /* the pump's for good */
	ring_pass(&g, &w, 103, 100);
	wire_hang_up(&w);
	rig_finish(&g, &w);
	rig_close(&g);
}
END_TEST

/* The mark comes when the receive of what is before it is still in the queue. */
START_TEST(a_receive_in_the_queue_stops_at_a_mark)
{
	struct wire w;
	struct rig g;
	char c, want;

	ring_open(&g);
	ring_lay(&g, &w);
	say(w.peer[0], 0, 100, 10);
	await_acked(w.peer[0]);
	w.relay.side[0].watch.ready |= LOOP_READABLE;
	pump_run(&w.relay.job);
	ck_assert(ring_lane(&w, 0)->receiving);
	pump_run(&w.relay.job); /* waits for it, and requests no other */
	stamp_fill(&want, 0, 110, 1);
	ck_assert_int_eq(send(w.peer[0], &want, 1, MSG_OOB), 1);
	say(w.peer[0], 0, 111, 10);
	await_acked(w.peer[0]);
	rig_settle(&g);
	hear(w.peer[1], 0, 100, 10);
	ck_assert_int_gt(peer_wait(w.peer[1], POLLPRI, SOON_MS), 0);
	ck_assert_int_eq(recv(w.peer[1], &c, 1, MSG_OOB), 1);
	ck_assert_int_eq(c, want);
	hear(w.peer[1], 0, 111, 10);
	wire_hang_up(&w);
	rig_finish(&g, &w);
	rig_close(&g);
}
END_TEST

/* Its receive finds nothing, and then the pump must, whose end that is. */
START_TEST(a_side_that_is_given_up_ends_though_a_receive_is_in_the_queue)
{
	struct wire w;
	struct rig g;

	ring_open(&g);
	ring_lay(&g, &w);
	w.relay.side[0].watch.ready |= LOOP_READABLE | WATCH_UNREAD;
	pump_run(&w.relay.job);
	ck_assert(ring_lane(&w, 0)->receiving);
	relay_fail(&w.relay, 0, ETIMEDOUT);
	rig_finish(&g, &w);
	ck_assert_int_eq(w.relay.stop, RELAY_RUNS); /* it did not linger */
	rig_close(&g);
}
END_TEST

static const int refusals[] = { -EPERM, -ENOSYS, -ENOMEM, -EMFILE, -EINVAL };

static void expect_refused(struct rig *g, int err)
{
	ck_assert_int_eq(uring_open(&g->env), err);
	ck_assert_ptr_null(g->env.engine);
	ck_assert_ptr_null(g->loop.flush);
}

/* Neither the ring, nor its buffers. */
START_TEST(a_kernel_that_refuses_leaves_nothing_behind)
{
	struct rig g;

	rig_open(&g, RELAY_COPY);
	for (unsigned i = 0; i < array_size(refusals); i++) {
		refused_ring = refusals[i];
		expect_refused(&g, refused_ring);
		refused_ring = 0;
		refused_buffers = refusals[i];
		expect_refused(&g, refused_buffers);
		refused_buffers = 0;
	}
	rig_close(&g);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("uring");
	TCase *tc = support_case(s, "uring");
	static const TTest *const *const tests[] = {
		&messages_pass_by_two_requests_each,
		&a_relay_that_is_stopped_has_no_lane_on_the_ring_any_more,
		&a_relay_that_is_stopped_counts_what_was_received_ahead,
		&a_relay_that_ends_when_its_write_is_over_is_not_run_again,
		&a_sink_that_stalls_stops_its_source_within_two_buffers,
		&a_sink_that_stalls_is_not_told_a_buffer_a_word,
		&more_at_once_than_there_is_room_for_all_get_through,
		&a_half_close_lets_the_answer_through,
		&a_reset_is_a_reset_behind_the_bytes_before_it,
		&a_reset_that_a_send_has_eaten_is_no_fin,
		&an_urgent_byte_stays_urgent_and_its_lane_leaves_the_ring,
		&a_receive_in_the_queue_stops_at_a_mark,
		&a_side_that_is_given_up_ends_though_a_receive_is_in_the_queue,
		&a_kernel_that_refuses_leaves_nothing_behind,
	};

	if (rig_modes() > RELAY_URING)
		for (unsigned i = 0; i < array_size(tests); i++)
			tcase_add_test(tc, *tests[i]);
	return support_main(s);
}
