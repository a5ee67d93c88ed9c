/* SPDX-License-Identifier: MIT */
/*
 * A RST is passed on as a RST, after the bytes that came before it, and never
 * as an EOF. _i % MODES is the mode, and in most tests _i / MODES
 * the side that resets.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/sock.h"
#include "unit/rig.h"

#define MODES rig_modes()

static void open_spinning(struct rig *g, struct wire *w, int mode)
{
	rig_open(g, (enum relay_mode)mode);
	wire_lay(g, w);
	rig_spin(g);
}

static void reset(struct wire *w, int i)
{
	peer_reset(w->peer[i]);
	w->peer[i] = -1;
}

/* The relay is over, and side @i was the one that reset. */
static void expect_resetter(struct wire *w, int i)
{
	wire_wait(w);
	ck_assert(!w->clean);
	ck_assert_int_eq(w->how[i], RELAY_END_RESET);
	ck_assert_int_eq(w->relay.stop, RELAY_RUNS);
}

/* FAULTS 2: the sketch made an EOF of it. */
START_TEST(a_reset_on_an_idle_connection_is_a_reset)
{
	int who = _i / MODES;
	struct wire w;
	struct rig g;

	open_spinning(&g, &w, _i % MODES);
	sleep_ms(20);
	reset(&w, who);
	ck_assert_int_eq(peer_expect_reset(w.peer[!who], SOON_MS), 0);
	expect_resetter(&w, who);
	ck_assert_int_eq(w.how[!who], RELAY_END_OPEN);
	rig_close(&g);
}
END_TEST

START_TEST(bytes_before_a_reset_arrive_before_it)
{
	int who = _i / MODES;
	struct wire w;
	struct rig g;

	open_spinning(&g, &w, _i % MODES);
	say(w.peer[!who], 2, 0, 5000);
	say(w.peer[who], 1, 0, 300000);
	await_acked(w.peer[who]);
	reset(&w, who);
	hear(w.peer[!who], 1, 0, 300000);
	ck_assert_int_eq(peer_expect_reset(w.peer[!who], SOON_MS), 0);
	expect_resetter(&w, who);
	ck_assert_uint_eq(w.relay.lane[who].delivered, 300000);
	rig_close(&g);
}
END_TEST

/* How many of the bytes of @stream come before the reset. */
static uint64_t hear_until_reset(int fd, unsigned stream)
{
	uint64_t got = 0;
	char buf[10000];
	ssize_t n;

	for (;;) {
		ck_assert_int_gt(peer_wait(fd, POLLIN, SOON_MS), 0);
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n <= 0)
			break;
		ck_assert_int_eq(stamp_check(buf, stream, got, (size_t)n), -1);
		got += (uint64_t)n;
		sleep_us(100);
	}
	ck_assert_msg(n < 0, "EOF after %lu bytes", (unsigned long)got);
	ck_assert_int_eq(errno, ECONNRESET);
	return got;
}

/* FAULTS 2, the other half: 5 MB that had been acknowledged were lost. Here
 * the reader has stalled, then goes on, slowly. */
START_TEST(all_that_was_acknowledged_before_a_reset_reaches_a_slow_reader)
{
	uint64_t said, acked, got;
	struct wire w;
	struct rig g;

	rig_open(&g, (enum relay_mode)_i);
	wire_lay(&g, &w);
	said = rig_stall(&g, &w, 0, 1);
	rig_spin(&g);
	acked = said - (uint64_t)peer_unacked(w.peer[0]);
	reset(&w, 0);
	got = hear_until_reset(w.peer[1], 1);
	ck_assert_uint_ge(got, acked);
	expect_resetter(&w, 0);
	ck_assert_uint_eq(w.relay.lane[0].delivered, got);
	rig_close(&g);
}
END_TEST

START_TEST(a_stalled_reader_that_resets_frees_the_writer)
{
	struct wire w;
	struct rig g;

	rig_open(&g, (enum relay_mode)_i);
	wire_lay(&g, &w);
	rig_stall(&g, &w, 0, 1);
	rig_spin(&g);
	reset(&w, 1);
	ck_assert_int_eq(peer_expect_reset(w.peer[0], SOON_MS), 0);
	expect_resetter(&w, 1);
	ck_assert_uint_gt(counter_read(&g.env.stats.dropped[DROP_sink_gone]) +
				  counter_read(&g.env.stats.discard.bytes),
			  0);
	rig_close(&g);
}
END_TEST

/* FAULTS 3: it was never noticed. */
START_TEST(a_reset_after_that_sides_fin_is_a_reset)
{
	int who = _i / MODES;
	struct wire w;
	struct rig g;

	open_spinning(&g, &w, _i % MODES);
	say(w.peer[who], 1, 0, 10);
	shutdown(w.peer[who], SHUT_WR);
	hear(w.peer[!who], 1, 0, 10);
	ck_assert_int_eq(peer_expect_eof(w.peer[!who], SOON_MS), 0);
	sleep_ms(20);
	ck_assert_int_eq(atomic_load(&w.done), 0);
	reset(&w, who);
	/* the reader has had its EOF: only poll and the writer are told */
	ck_assert_int_ne(peer_wait(w.peer[!who], 0, SOON_MS) & POLLERR, 0);
	ck_assert_int_eq(peer_send_all(w.peer[!who], "x", 1, 1000), -EPIPE);
	expect_resetter(&w, who);
	ck_assert_int_eq(w.how[!who], RELAY_END_OPEN);
	rig_close(&g);
}
END_TEST

/* The same with the bytes, the FIN and the RST all there when it starts. */
START_TEST(bytes_fin_and_reset_that_wait_are_passed_on_in_that_order)
{
	struct wire w;
	struct rig g;

	rig_open(&g, (enum relay_mode)_i);
	wire_plug(&g, &w);
	say(w.peer[0], 1, 0, 50000);
	shutdown(w.peer[0], SHUT_WR);
	await_acked(w.peer[0]);
	reset(&w, 0);
	ck_assert_int_gt(peer_wait(w.relay.side[0].watch.fd, 0, SOON_MS), 0);
	wire_start(&w);
	rig_spin(&g);
	hear(w.peer[1], 1, 0, 50000);
	ck_assert_int_eq(peer_expect_eof(w.peer[1], SOON_MS), 0);
	ck_assert_int_ne(peer_wait(w.peer[1], 0, SOON_MS) & POLLERR, 0);
	expect_resetter(&w, 0);
	rig_close(&g);
}
END_TEST

START_TEST(two_resets_at_once_end_it_too)
{
	struct wire w;
	struct rig g;

	rig_open(&g, (enum relay_mode)_i);
	wire_lay(&g, &w);
	rig_settle(&g);
	say(w.peer[0], 1, 0, 1000);
	say(w.peer[1], 2, 0, 1000);
	reset(&w, 0);
	reset(&w, 1);
	rig_finish(&g, &w);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(w.how[i], RELAY_END_RESET);
	rig_close(&g);
}
END_TEST

static void reset_1(void *arg)
{
	struct wire *w = arg;

	reset(w, 1);
	ck_assert_int_gt(peer_wait(w->relay.side[1].watch.fd, 0, SOON_MS), 0);
}

/* FAULTS 14: shutdown(2) says ENOTCONN, which is no error of ours. Only so:
 * were the RST known before, nothing would be shut down. */
START_TEST(a_reset_that_shutdown_finds_first_is_a_reset)
{
	struct wire w;
	struct rig g;

	rig_open(&g, (enum relay_mode)_i);
	wire_lay(&g, &w);
	rig_settle(&g);
	shutdown(w.peer[0], SHUT_WR);
	rig_ambush(&g, reset_1, &w);
	rig_finish(&g, &w);
	ck_assert_int_eq(w.how[1], RELAY_END_RESET);
	ck_assert_int_eq(w.how[0], RELAY_END_FIN);
	ck_assert_int_eq(peer_expect_reset(w.peer[0], SOON_MS), 0);
	rig_close(&g);
}
END_TEST

static void answer_and_reset_1(void *arg)
{
	struct wire *w = arg;

	say(w->peer[1], 2, 0, 20000);
	await_acked(w->peer[1]);
	reset_1(arg);
}

/* K20: what a write has eaten, no read will tell: 0 is no FIN then. */
START_TEST(a_reset_that_a_write_finds_first_is_no_eof)
{
	struct wire w;
	struct rig g;

	rig_open(&g, (enum relay_mode)_i);
	wire_lay(&g, &w);
	rig_settle(&g);
	say(w.peer[0], 1, 0, 10);
	await_acked(w.peer[0]);
	rig_ambush(&g, answer_and_reset_1, &w);
	rig_finish(&g, &w);
	hear(w.peer[0], 2, 0, 20000);
	ck_assert_int_eq(peer_expect_reset(w.peer[0], SOON_MS), 0);
	ck_assert_int_eq(w.how[1], RELAY_END_RESET);
	rig_close(&g);
}
END_TEST

static void eat_error_of_1(void *arg)
{
	struct wire *w = arg;
	socklen_t len = sizeof(int);
	int err;

	reset_1(arg);
	ck_assert_int_eq(getsockopt(w->relay.side[1].watch.fd, SOL_SOCKET,
				    SO_ERROR, &err, &len),
			 0);
	ck_assert_int_ne(err, 0);
}

/*
 * A splice(2) that has moved something before it meets the RST reports what it
 * has moved, and the error is gone: what the next write says is EPIPE, as if
 * the peer had said FIN before. _i is the mode, and whether it had.
 */
START_TEST(a_reset_that_nobody_was_told_of_is_no_fin)
{
	bool fin = _i >= MODES;
	struct wire w;
	struct rig g;

	rig_open(&g, (enum relay_mode)(_i % MODES));
	wire_lay(&g, &w);
	rig_settle(&g);
	say(w.peer[1], 2, 0, 20000);
	if (fin)
		shutdown(w.peer[1], SHUT_WR);
	say(w.peer[0], 1, 0, 10);
	await_acked(w.peer[0]);
	await_acked(w.peer[1]);
	rig_ambush(&g, eat_error_of_1, &w);
	rig_finish(&g, &w);
	hear(w.peer[0], 2, 0, 20000);
	if (fin)
		ck_assert_int_eq(peer_expect_eof(w.peer[0], SOON_MS), 0);
	else
		ck_assert_int_eq(peer_expect_reset(w.peer[0], SOON_MS), 0);
	ck_assert_int_eq(w.how[1], RELAY_END_RESET);
	rig_close(&g);
}
END_TEST

/* FAULTS 14: something bounds the time. */
START_TEST(a_reader_that_never_reads_is_waited_for_no_longer_than_said)
{
	struct wire w;
	struct rig g;
	int64_t t;

	rig_open(&g, (enum relay_mode)_i);
	g.env.linger_ms = 200;
	wire_lay(&g, &w);
	rig_stall(&g, &w, 0, 1);
	rig_spin(&g);
	t = now_ms();
	reset(&w, 0);
	wire_wait(&w);
	ck_assert_int_ge(now_ms() - t, 190);
	ck_assert_int_eq(w.relay.stop, RELAY_LINGERED);
	ck_assert_int_eq(w.how[0], RELAY_END_RESET);
	ck_assert_uint_gt(counter_read(&g.env.stats.dropped[DROP_source_reset]),
			  0);
	hear_until_reset(w.peer[1], 1);
	rig_close(&g);
}
END_TEST

/* It has not read the answer yet: it must come to that, even if it first has
 * to say all it wants to say. */
START_TEST(who_still_sends_to_a_peer_that_is_gone_is_not_held_up)
{
	struct wire w;
	struct rig g;

	rig_open(&g, (enum relay_mode)_i);
	wire_lay(&g, &w);
	rig_stall(&g, &w, 1, 2);
	rig_spin(&g);
	reset(&w, 1);
	sleep_ms(20);
	say(w.peer[0], 1, 0, 8 << 20); /* more than all buffers hold */
	hear_until_reset(w.peer[0], 2);
	expect_resetter(&w, 1);
	rig_close(&g);
}
END_TEST

START_TEST(what_has_nowhere_to_go_is_read_within_a_bound)
{
	int64_t end = now_ms() + SOON_MS;
	const struct lane *l;
	struct wire w;
	struct rig g;

	rig_open(&g, (enum relay_mode)_i);
	g.env.discard_max = 200000;
	wire_lay(&g, &w);
	l = &w.relay.lane[0];
	rig_stall(&g, &w, 1, 2);
	reset(&w, 1);
	do {
		ck_assert_int_lt(now_ms(), end);
		rig_spin(&g);
		say_until_full(w.peer[0], 1, 0, 50);
		rig_rest(&g);
	} while (l->state != LANE_ENDED);
	rig_settle(&g);
	ck_assert_uint_gt(l->read - l->delivered, 200000);
	ck_assert_uint_le(l->read - l->delivered, 200000 + RIG_BUF_SIZE);
	relay_stop(&w.relay);
	rig_finish(&g, &w);
	rig_close(&g);
}
END_TEST

START_TEST(a_relay_that_is_stopped_resets_both)
{
	struct wire w;
	struct rig g;
	size_t held;

	rig_open(&g, (enum relay_mode)_i);
	wire_lay(&g, &w);
	rig_stall(&g, &w, 0, 1);
	held = lane_holds(&w.relay.lane[0]) + w.relay.lane[0].ahead;
	relay_stop(&w.relay);
	relay_stop(&w.relay);
	ck_assert_int_eq(atomic_load(&w.done), 0); /* not inside a batch */
	rig_finish(&g, &w);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(w.how[i], RELAY_END_OPEN);
	ck_assert_int_eq(w.relay.stop, RELAY_STOPPED);
	ck_assert_uint_eq(counter_read(&g.env.stats.dropped[DROP_stopped]), held);
	ck_assert_int_eq(peer_expect_reset(w.peer[0], SOON_MS), 0);
	hear_until_reset(w.peer[1], 1);
	rig_close(&g);
}
END_TEST

START_TEST(a_relay_may_be_stopped_before_its_first_turn)
{
	struct wire w;
	struct rig g;

	rig_open(&g, (enum relay_mode)_i);
	wire_lay(&g, &w);
	relay_stop(&w.relay);
	rig_finish(&g, &w);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(peer_expect_reset(w.peer[i], SOON_MS), 0);
	rig_turns(&g, 3);
	rig_close(&g);
}
END_TEST

static void add_late_tests(TCase *tc)
{
	tcase_add_loop_test(tc, a_reset_that_shutdown_finds_first_is_a_reset, 0,
			    MODES);
	tcase_add_loop_test(tc, a_reset_that_a_write_finds_first_is_no_eof, 0,
			    MODES);
	tcase_add_loop_test(tc, a_reset_that_nobody_was_told_of_is_no_fin, 0,
			    2 * MODES);
	tcase_add_loop_test(
		tc, a_reader_that_never_reads_is_waited_for_no_longer_than_said,
		0, MODES);
	tcase_add_loop_test(tc,
			    who_still_sends_to_a_peer_that_is_gone_is_not_held_up,
			    0, MODES);
	tcase_add_loop_test(tc, what_has_nowhere_to_go_is_read_within_a_bound,
			    0, MODES);
	tcase_add_loop_test(tc, a_relay_that_is_stopped_resets_both, 0, MODES);
	tcase_add_loop_test(tc, a_relay_may_be_stopped_before_its_first_turn, 0,
			    MODES);
}

int main(void)
{
	Suite *s = suite_create("reset");
	TCase *tc = support_case(s, "reset");

	tcase_add_loop_test(tc, a_reset_on_an_idle_connection_is_a_reset, 0,
			    2 * MODES);
	tcase_add_loop_test(tc, bytes_before_a_reset_arrive_before_it, 0,
			    2 * MODES);
	tcase_add_loop_test(
		tc,
		all_that_was_acknowledged_before_a_reset_reaches_a_slow_reader,
		0, MODES);
	tcase_add_loop_test(tc, a_stalled_reader_that_resets_frees_the_writer,
			    0, MODES);
	tcase_add_loop_test(tc, a_reset_after_that_sides_fin_is_a_reset, 0,
			    2 * MODES);
	tcase_add_loop_test(
		tc, bytes_fin_and_reset_that_wait_are_passed_on_in_that_order,
		0, MODES);
	tcase_add_loop_test(tc, two_resets_at_once_end_it_too, 0, MODES);
	add_late_tests(tc);
	return support_main(s);
}
