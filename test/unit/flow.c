/* SPDX-License-Identifier: MIT */
/*
 * A relay carries bytes and FINs as if it were not there. Each test runs in
 * every mode: _i % MODES is the mode.
 */
#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "relay/conduit.h"
#include "support/pacer.h"
#include "unit/rig.h"

#define MODES rig_modes()
#define BULK  3000001

static enum relay_mode mode_of(int i)
{
	return (enum relay_mode)(i % MODES);
}

/* FAULTS 14: what is counted is what was delivered, and how. */
static void expect_by_pipe(const struct lane *l, enum relay_mode mode)
{
	if (mode == RELAY_SPLICE)
		ck_assert_uint_eq(l->by_pipe, l->delivered);
	else if (mode != RELAY_AUTO)
		ck_assert_uint_eq(l->by_pipe, 0);
	else
		ck_assert_uint_lt(l->by_pipe, l->delivered);
}

static void expect_fins(const struct wire *w)
{
	ck_assert(w->clean);
	for (int i = 0; i < 2; i++) {
		const struct lane *l = &w->relay.lane[i];

		ck_assert_int_eq(w->how[i], RELAY_END_FIN);
		ck_assert_int_eq(w->relay.side[i].error, 0);
		ck_assert_uint_eq(l->read, l->delivered);
	}
}

/* _i / MODES: nobody reads slowly, or side 0, side 1, both. */
START_TEST(bytes_pass_both_ways_at_once_whole_and_in_order)
{
	struct pacer up[2], down[2];
	struct wire w;
	struct rig g;

	rig_open(&g, mode_of(_i));
	wire_lay(&g, &w);
	rig_spin(&g);
	for (int i = 0; i < 2; i++) {
		up[i] = (struct pacer){ .fd = w.peer[i],
					.stream = (unsigned)i,
					.size = BULK,
					.chunk = 50000,
					.end = 1 };
		down[i] = up[i];
		down[i].fd = w.peer[!i];
		if (_i / MODES & (i + 1))
			down[i].pause_us = 500;
		pacer_start_recv(&down[i]);
		pacer_start_send(&up[i]);
	}
	for (int i = 0; i < 2; i++) {
		pacer_join(&up[i]);
		pacer_join(&down[i]);
	}
	wire_wait(&w);
	rig_rest(&g);
	expect_fins(&w);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(w.relay.lane[i].delivered, BULK);
		expect_by_pipe(&w.relay.lane[i], mode_of(_i));
	}
	rig_close(&g);
}
END_TEST

/* "Connect, send 8, FIN, receive 6, expect EOF"; _i / MODES asks. */
START_TEST(a_half_close_lets_the_answer_through)
{
	int asks = _i / MODES;
	struct wire w;
	struct rig g;

	rig_open(&g, mode_of(_i));
	wire_lay(&g, &w);
	rig_spin(&g);
	say(w.peer[asks], 1, 0, 8);
	shutdown(w.peer[asks], SHUT_WR);
	hear(w.peer[!asks], 1, 0, 8);
	ck_assert_int_eq(peer_expect_eof(w.peer[!asks], SOON_MS), 0);
	ck_assert_int_eq(peer_expect_silence(w.peer[asks], 30), 0);
	say(w.peer[!asks], 2, 0, 6);
	hear(w.peer[asks], 2, 0, 6);
	ck_assert_int_eq(peer_expect_silence(w.peer[asks], 30), 0);
	say(w.peer[!asks], 2, 6, 200000);
	shutdown(w.peer[!asks], SHUT_WR);
	hear(w.peer[asks], 2, 6, 200000);
	ck_assert_int_eq(peer_expect_eof(w.peer[asks], SOON_MS), 0);
	wire_wait(&w);
	rig_rest(&g);
	expect_fins(&w);
	rig_close(&g);
}
END_TEST

START_TEST(a_fin_alone_is_passed_on_and_so_is_the_other)
{
	struct wire w;
	struct rig g;

	rig_open(&g, mode_of(_i));
	wire_lay(&g, &w);
	rig_settle(&g);
	shutdown(w.peer[0], SHUT_WR);
	rig_settle(&g);
	ck_assert_int_eq(peer_expect_eof(w.peer[1], 0), 0);
	ck_assert_int_eq(peer_expect_silence(w.peer[0], 20), 0);
	ck_assert_int_eq(atomic_load(&w.done), 0);
	shutdown(w.peer[1], SHUT_WR);
	rig_finish(&g, &w);
	ck_assert_int_eq(peer_expect_eof(w.peer[0], SOON_MS), 0);
	expect_fins(&w);
	rig_close(&g);
}
END_TEST

#define ANSWER 100000

/* The client sends without end; the server answers, and closes with bytes of
 * the client unread, so that its kernel says RST. */
static void answer_early(enum relay_mode mode)
{
	struct pacer upload = { .stream = 1, .size = 1 << 30 };
	struct wire w;
	struct rig g;

	rig_open(&g, mode);
	wire_lay(&g, &w);
	rig_spin(&g);
	upload.fd = w.peer[0];
	pacer_start_send(&upload);
	hear(w.peer[1], 1, 0, 1000);
	say(w.peer[1], 2, 0, ANSWER);
	await_acked(w.peer[1]); /* or its own RST would throw it away */
	w.peer[1] = close_fd(w.peer[1]);

	hear(w.peer[0], 2, 0, ANSWER);
	wire_wait(&w);
	ck_assert_int_lt(pacer_wait(&upload), 0); /* and it is told so */
	ck_assert_int_ne(upload.error, -ETIMEDOUT);
	rig_rest(&g);
	ck_assert(!w.clean);
	ck_assert_int_eq(w.how[1], RELAY_END_RESET);
	ck_assert_uint_eq(w.relay.lane[1].delivered, ANSWER);
	rig_close(&g);
}

/* FAULTS 1: of 30 answers the sketch lost 30. */
START_TEST(an_answer_and_a_close_while_the_other_uploads_arrive_30_of_30)
{
	for (int n = 0; n < 30; n++)
		answer_early(mode_of(_i));
}
END_TEST

START_TEST(an_idle_connection_holds_two_descriptors_and_no_memory)
{
	struct wire w;
	struct rig g;
	int fds;

	rig_open(&g, mode_of(_i));
	wire_lay(&g, &w);
	rig_settle(&g);
	fds = open_fds();
	ck_assert_uint_eq(counter_read(&g.env.stats.pipes_lent), 0);
	for (int i = 0; i < 2; i++) {
		say(w.peer[i], 1, 0, 5000);
		rig_settle(&g);
		hear(w.peer[!i], 1, 0, 5000);
		for (int j = 0; j < 2; j++)
			ck_assert_ptr_null(w.relay.lane[j].conduit);
		ck_assert_uint_eq(counter_read(&g.env.stats.pipes_out), 0);
		ck_assert_uint_eq(counter_read(&g.env.stats.buffers_now), 0);
	}
	/* the pipe stays in the store, for all */
	ck_assert_int_eq(open_fds(), fds + 2 * (mode_of(_i) == RELAY_SPLICE));
	wire_hang_up(&w);
	rig_finish(&g, &w);
	rig_close(&g);
}
END_TEST

START_TEST(what_came_before_the_start_is_not_lost)
{
	struct wire w;
	struct rig g;

	rig_open(&g, mode_of(_i));
	wire_plug(&g, &w);
	say(w.peer[0], 1, 0, 70000);
	shutdown(w.peer[0], SHUT_WR);
	say(w.peer[1], 2, 0, 10);
	wire_start(&w);
	rig_settle(&g);
	hear(w.peer[1], 1, 0, 70000);
	ck_assert_int_eq(peer_expect_eof(w.peer[1], SOON_MS), 0);
	hear(w.peer[0], 2, 0, 10);
	shutdown(w.peer[1], SHUT_WR);
	rig_finish(&g, &w);
	expect_fins(&w);
	rig_close(&g);
}
END_TEST

static int seen;

static void connecting(struct watch *watch)
{
	(void)watch;
	seen++;
}

/* FAULTS 11: the sockets are registered once, while the owner connects, and
 * what those watches have seen is the relay's. */
START_TEST(a_watch_of_the_owners_is_taken_over_with_what_it_has_seen)
{
	struct wire w;
	struct rig g;

	rig_open(&g, mode_of(_i));
	wire_plug(&g, &w);
	say(w.peer[0], 1, 0, 10);
	shutdown(w.peer[0], SHUT_WR);
	for (int i = 0; i < 2; i++) {
		struct watch *side = &w.relay.side[i].watch;

		ck_assert_int_eq(loop_watch(&g.loop, side, side->fd,
					    LOOP_SOCKET, connecting),
				 0);
	}
	for (int i = 0; i < 5; i++)
		loop_turn(&g.loop, 10);
	ck_assert_int_ge(seen, 2);
	wire_take_over(&w);
	rig_settle(&g);
	hear(w.peer[1], 1, 0, 10);
	ck_assert_int_eq(peer_expect_eof(w.peer[1], SOON_MS), 0);
	shutdown(w.peer[1], SHUT_WR);
	rig_finish(&g, &w);
	expect_fins(&w);
	rig_close(&g);
}
END_TEST

static rlim_t set_descriptors(rlim_t n)
{
	struct rlimit l;
	rlim_t was;

	getrlimit(RLIMIT_NOFILE, &l);
	was = l.rlim_cur;
	l.rlim_cur = n;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &l), 0);
	return was;
}

/* FAULTS 7: no pipe is needed to learn of an end, or to carry the answer. */
START_TEST(without_descriptors_a_fin_and_its_answer_pass)
{
	struct wire w;
	struct rig g;
	rlim_t was;

	rig_open(&g, mode_of(_i));
	wire_lay(&g, &w);
	was = set_descriptors(3);
	shutdown(w.peer[0], SHUT_WR);
	rig_settle(&g);
	ck_assert_int_eq(peer_expect_eof(w.peer[1], 0), 0);
	say(w.peer[1], 2, 0, 50000);
	shutdown(w.peer[1], SHUT_WR);
	rig_finish(&g, &w);
	hear(w.peer[0], 2, 0, 50000);
	ck_assert_int_eq(peer_expect_eof(w.peer[0], SOON_MS), 0);
	set_descriptors(was);
	expect_fins(&w);
	ck_assert_uint_eq(w.relay.lane[1].by_pipe, 0);
	if (mode_of(_i) == RELAY_SPLICE)
		ck_assert_uint_gt(
			counter_read(
				&g.env.stats.fallbacks[FALLBACK_pipe_descriptors]),
			0);
	rig_close(&g);
}
END_TEST

/* FAULTS 10: one lane by buffer, the other by pipe. */
START_TEST(each_lane_has_a_conduit_of_its_own_kind)
{
	struct wire w;
	struct rig g;

	rig_open(&g, RELAY_SPLICE);
	wire_lay(&g, &w);
	w.relay.lane[_i].no_pipe = true;
	for (unsigned i = 0; i < 2; i++) {
		say(w.peer[i], i, 0, 30000);
		rig_settle(&g);
		hear(w.peer[!i], i, 0, 30000);
		ck_assert_uint_eq(w.relay.lane[i].by_pipe,
				  (int)i == _i ? 0 : 30000);
	}
	wire_hang_up(&w);
	rig_finish(&g, &w);
	rig_close(&g);
}
END_TEST

START_TEST(many_short_messages_pass_one_by_one)
{
	struct wire w;
	struct rig g;

	rig_open(&g, mode_of(_i));
	wire_lay(&g, &w);
	rig_spin(&g);
	for (unsigned n = 0; n < 1000; n++) {
		size_t size = 1 + n % 700;

		say(w.peer[0], 1, n, size);
		hear(w.peer[1], 1, n, size);
		say(w.peer[1], 2, n, 1);
		hear(w.peer[0], 2, n, 1);
	}
	wire_hang_up(&w);
	wire_wait(&w);
	rig_close(&g);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("flow");
	TCase *tc = support_case(s, "flow");

	tcase_add_loop_test(tc, bytes_pass_both_ways_at_once_whole_and_in_order,
			    0, 4 * MODES);
	tcase_add_loop_test(tc, a_half_close_lets_the_answer_through, 0,
			    2 * MODES);
	tcase_add_loop_test(tc, a_fin_alone_is_passed_on_and_so_is_the_other, 0,
			    MODES);
	tcase_add_loop_test(
		tc, an_answer_and_a_close_while_the_other_uploads_arrive_30_of_30,
		0, MODES);
	tcase_add_loop_test(
		tc, an_idle_connection_holds_two_descriptors_and_no_memory, 0,
		MODES);
	tcase_add_loop_test(tc, what_came_before_the_start_is_not_lost, 0, MODES);
	tcase_add_loop_test(
		tc, a_watch_of_the_owners_is_taken_over_with_what_it_has_seen,
		0, MODES);
	tcase_add_loop_test(tc, without_descriptors_a_fin_and_its_answer_pass,
			    0, MODES);
	tcase_add_loop_test(tc, each_lane_has_a_conduit_of_its_own_kind, 0, 2);
	tcase_add_loop_test(tc, many_short_messages_pass_one_by_one, 0, MODES);
	return support_main(s);
}
