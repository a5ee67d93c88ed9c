/* SPDX-License-Identifier: MIT */
/*
 * Urgent data through a relay: FAULTS 4. _i is the mode.
 */
#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/pacer.h"
#include "unit/rig.h"

#define MODES rig_modes()

/* Says one byte of a stream as urgent. */
static void shout(int fd, unsigned stream, uint64_t offset)
{
	char c;

	stamp_fill(&c, stream, offset, 1);
	ck_assert_int_eq(send(fd, &c, 1, MSG_OOB | MSG_NOSIGNAL), 1);
}

static int at_mark(int fd)
{
	int at;

	ck_assert_int_eq(ioctl(fd, SIOCATMARK, &at), 0);
	return at;
}

/* What comes next is the urgent byte at @offset, there and nowhere else. */
static void hear_shout(int fd, unsigned stream, uint64_t offset)
{
	char c;

	ck_assert_int_gt(peer_wait(fd, POLLPRI, SOON_MS), 0);
	ck_assert_int_eq(at_mark(fd), 1);
	ck_assert_int_eq(recv(fd, &c, 1, MSG_OOB), 1);
	ck_assert_int_eq(stamp_check(&c, stream, offset, 1), -1);
}

/* A relay, its loop turned by a thread, that has carried @before bytes. */
static void open_after(struct rig *g, struct wire *w, int mode, size_t before)
{
	rig_open(g, (enum relay_mode)mode);
	wire_lay(g, w);
	rig_spin(g);
	if (!before)
		return;
	say(w->peer[0], 1, 0, before);
	hear(w->peer[1], 1, 0, before);
}

static void close_clean(struct rig *g, struct wire *w)
{
	for (int i = 0; i < 2; i++)
		shutdown(w->peer[i], SHUT_WR);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(peer_expect_eof(w->peer[i], SOON_MS), 0);
	wire_wait(w);
	ck_assert(w->clean);
	rig_close(g);
}

START_TEST(an_urgent_byte_stays_urgent_and_in_its_place)
{
	struct wire w;
	struct rig g;

	open_after(&g, &w, _i, 1000);
	say(w.peer[0], 1, 1000, 500);
	shout(w.peer[0], 1, 1500);
	say(w.peer[0], 1, 1501, 500);
	hear(w.peer[1], 1, 1000, 500);
	hear_shout(w.peer[1], 1, 1500);
	hear(w.peer[1], 1, 1501, 500);
	close_clean(&g, &w);
}
END_TEST

/* After epoll has reported what there is, the next byte arrives, and is urgent. */
static void shout_behind(void *arg)
{
	struct wire *w = arg;

	shout(w->peer[0], 1, RIG_BUF_SIZE);
	ck_assert_int_gt(peer_wait(w->relay.side[0].watch.fd, POLLPRI, SOON_MS),
			 0);
}

START_TEST(an_urgent_byte_stays_urgent_though_a_full_buffer_ends_before_it)
{
	struct wire w;
	struct rig g;

	rig_open(&g, (enum relay_mode)_i);
	wire_lay(&g, &w);
	rig_settle(&g);
	say(w.peer[0], 1, 0, RIG_BUF_SIZE);
	while (peer_unread(w.relay.side[0].watch.fd) < RIG_BUF_SIZE)
		sleep_us(100);
	rig_ambush(&g, shout_behind, &w);
	rig_spin(&g);
	hear(w.peer[1], 1, 0, RIG_BUF_SIZE);
	hear_shout(w.peer[1], 1, RIG_BUF_SIZE);
	close_clean(&g, &w);
}
END_TEST

START_TEST(the_stream_goes_on_by_pipe_after_it)
{
	struct wire w;
	struct rig g;

	open_after(&g, &w, RELAY_SPLICE, 1000);
	shout(w.peer[0], 1, 1000);
	hear_shout(w.peer[1], 1, 1000);
	for (unsigned n = 1001; n < 20001; n += 2000) {
		say(w.peer[0], 1, n, 2000);
		hear(w.peer[1], 1, n, 2000);
	}
	rig_rest(&g);
	ck_assert_uint_eq(w.relay.lane[0].by_pipe, 1000 + 10 * 2000);
	ck_assert_uint_eq(counter_read(&g.env.stats.fallbacks[FALLBACK_urgent]),
			  1);
	rig_spin(&g);
	close_clean(&g, &w);
}
END_TEST

START_TEST(an_urgent_byte_may_be_the_first_or_alone)
{
	struct wire w;
	struct rig g;

	open_after(&g, &w, _i, 0);
	shout(w.peer[0], 1, 0);
	hear_shout(w.peer[1], 1, 0);
	say(w.peer[0], 1, 1, 10);
	hear(w.peer[1], 1, 1, 10);
	close_clean(&g, &w);
}
END_TEST

START_TEST(an_urgent_byte_may_be_the_last_before_the_fin)
{
	struct wire w;
	struct rig g;

	open_after(&g, &w, _i, 100);
	say(w.peer[0], 1, 100, 10);
	shout(w.peer[0], 1, 110);
	shutdown(w.peer[0], SHUT_WR);
	hear(w.peer[1], 1, 100, 10);
	hear_shout(w.peer[1], 1, 110);
	ck_assert_int_eq(peer_expect_eof(w.peer[1], SOON_MS), 0);
	close_clean(&g, &w);
}
END_TEST

START_TEST(one_urgent_byte_after_another_passes_both_ways)
{
	struct wire w;
	struct rig g;

	open_after(&g, &w, _i, 0);
	for (unsigned n = 0; n < 50; n++)
		for (unsigned i = 0; i < 2; i++) {
			say(w.peer[i], i, n * 30, n % 3 * 10);
			shout(w.peer[i], i, n * 30 + n % 3 * 10);
			hear(w.peer[!i], i, n * 30, n % 3 * 10);
			hear_shout(w.peer[!i], i, n * 30 + n % 3 * 10);
		}
	close_clean(&g, &w);
}
END_TEST

#define BEFORE 400000
#define AFTER  400000

/* The sink takes nothing for a while, so the byte has to wait. In line, it has
 * its place among the bytes, and the mark is just before it. */
START_TEST(in_a_bulk_transfer_it_waits_for_what_came_before_it)
{
	struct pacer up = { .stream = 1, .size = BEFORE };
	struct pacer rest = {
		.stream = 1, .offset = BEFORE + 1, .size = AFTER, .end = 1
	};
	struct wire w;
	struct rig g;
	int one = 1;

	open_after(&g, &w, _i, 0);
	ck_assert_int_eq(setsockopt(w.peer[1], SOL_SOCKET, SO_OOBINLINE, &one,
				    sizeof(one)),
			 0);
	up.fd = rest.fd = w.peer[0];
	pacer_start_send(&up);
	sleep_ms(50);
	hear(w.peer[1], 1, 0, BEFORE / 2);
	pacer_join(&up);
	shout(w.peer[0], 1, BEFORE);
	pacer_start_send(&rest);
	sleep_ms(50);
	hear(w.peer[1], 1, BEFORE / 2, BEFORE - BEFORE / 2);
	ck_assert_int_gt(peer_wait(w.peer[1], POLLIN, SOON_MS), 0);
	ck_assert_int_eq(at_mark(w.peer[1]), 1);
	hear(w.peer[1], 1, BEFORE, 1 + AFTER);
	pacer_join(&rest);
	ck_assert_int_eq(peer_expect_eof(w.peer[1], SOON_MS), 0);
	close_clean(&g, &w);
}
END_TEST

/* Says what fits, turns the loop, and has the slow reader read a little. */
static void trickle(struct rig *g, struct wire *w, uint64_t *said, uint64_t *heard)
{
	char buf[16384];
	ssize_t n;

	stamp_fill(buf, 1, *said, sizeof(buf));
	n = send(w->peer[0], buf, sizeof(buf), MSG_DONTWAIT | MSG_NOSIGNAL);
	*said += n > 0 ? (uint64_t)n : 0;
	rig_turn(g);
	n = recv(w->peer[1], buf, 8000, MSG_DONTWAIT);
	if (n <= 0)
		return;
	ck_assert_int_eq(stamp_check(buf, 1, *heard, (size_t)n), -1);
	*heard += (uint64_t)n;
}

/* The sink is slow, so that the lane holds bytes at the end of every turn: it
 * must come back to a pipe all the same. */
START_TEST(a_slow_sink_does_not_keep_the_lane_on_buffers_after_it)
{
	uint64_t said = 0, heard = 0, before, mark;
	struct wire w;
	struct rig g;

	rig_open(&g, RELAY_SPLICE);
	wire_lay(&g, &w);
	peer_small_buffers(w.relay.side[1].watch.fd, 32768);
	ck_assert_int_eq(setsockopt(w.peer[1], SOL_SOCKET, SO_OOBINLINE,
				    &(int){ 1 }, sizeof(int)),
			 0);
	for (int i = 0; i < 100; i++)
		trickle(&g, &w, &said, &heard);
	mark = said;
	shout(w.peer[0], 1, said++);
	for (int i = 0; i < 20000 && heard <= mark + 200000; i++)
		trickle(&g, &w, &said, &heard);
	before = w.relay.lane[0].by_pipe;
	mark = heard;
	for (int i = 0; i < 20000 && heard <= mark + 1000000; i++)
		trickle(&g, &w, &said, &heard);
	ck_assert_uint_gt(w.relay.lane[0].by_pipe, before + 500000);
	wire_hang_up(&w);
	rig_finish(&g, &w);
	rig_close(&g);
}
END_TEST

START_TEST(with_pipes_of_its_own_a_lane_crosses_the_mark_too)
{
	struct wire w;
	struct rig g;

	rig_open(&g, RELAY_SPLICE);
	g.env.own_pipes = true;
	wire_lay(&g, &w);
	rig_spin(&g);
	for (unsigned n = 0; n < 5; n++) {
		say(w.peer[0], 1, n * 201, 100);
		shout(w.peer[0], 1, n * 201 + 100);
		say(w.peer[0], 1, n * 201 + 101, 100);
		hear(w.peer[1], 1, n * 201, 100);
		hear_shout(w.peer[1], 1, n * 201 + 100);
		hear(w.peer[1], 1, n * 201 + 101, 100);
	}
	close_clean(&g, &w);
}
END_TEST

/* What comes after the kernel has said what is ready: nothing tells of it yet,
 * not even of the mark. */
struct late {
	struct wire *w;
	uint64_t at;
	bool resets;
};

static void say_late(void *arg)
{
	struct late *late = arg;
	struct wire *w = late->w;

	shout(w->peer[0], 1, late->at);
	say(w->peer[0], 1, late->at + 1, 100);
	await_acked(w->peer[0]);
	if (late->resets) {
		peer_reset(w->peer[0]);
		w->peer[0] = -1;
	} else {
		shutdown(w->peer[0], SHUT_WR);
	}
	ck_assert_int_gt(peer_wait(w->relay.side[0].watch.fd, POLLRDHUP, 1000),
			 0);
}

/*
 * _i / MODES: FIN or RST. splice(2) at the mark says 0 after the FIN, as if there
 * were nothing more (K7). The first bytes fill a buffer to the brim, so that
 * copy mode reads on, too.
 */
START_TEST(a_mark_and_an_end_that_come_late_are_not_taken_for_the_end)
{
	struct late late = { .at = RIG_BUF_SIZE, .resets = _i / MODES };
	struct wire w;
	struct rig g;

	rig_open(&g, (enum relay_mode)(_i % MODES));
	wire_lay(&g, &w);
	rig_settle(&g);
	say(w.peer[0], 1, 0, late.at);
	late.w = &w;
	await_acked(w.peer[0]);
	rig_ambush(&g, say_late, &late);
	rig_turn(&g);
	rig_spin(&g);
	/* in line: the byte is where it was, urgent or not */
	ck_assert_int_eq(setsockopt(w.peer[1], SOL_SOCKET, SO_OOBINLINE,
				    &(int){ 1 }, sizeof(int)),
			 0);
	hear(w.peer[1], 1, 0, late.at + 101);
	if (late.resets) {
		ck_assert_int_eq(peer_expect_reset(w.peer[1], SOON_MS), 0);
		wire_wait(&w);
		rig_close(&g);
	} else {
		ck_assert_int_eq(peer_expect_eof(w.peer[1], SOON_MS), 0);
		close_clean(&g, &w);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("urgent");
	TCase *tc = support_case(s, "urgent");

	tcase_add_loop_test(
		tc,
		an_urgent_byte_stays_urgent_though_a_full_buffer_ends_before_it,
		0, MODES);
	tcase_add_loop_test(tc, an_urgent_byte_stays_urgent_and_in_its_place, 0,
			    MODES);
	tcase_add_test(tc, the_stream_goes_on_by_pipe_after_it);
	tcase_add_loop_test(tc, an_urgent_byte_may_be_the_first_or_alone, 0,
			    MODES);
	tcase_add_loop_test(tc, an_urgent_byte_may_be_the_last_before_the_fin,
			    0, MODES);
	tcase_add_loop_test(tc, one_urgent_byte_after_another_passes_both_ways,
			    0, MODES);
	tcase_add_loop_test(tc,
			    in_a_bulk_transfer_it_waits_for_what_came_before_it,
			    0, MODES);
	tcase_add_test(tc,
		       a_slow_sink_does_not_keep_the_lane_on_buffers_after_it);
	tcase_add_test(tc, with_pipes_of_its_own_a_lane_crosses_the_mark_too);
	tcase_add_loop_test(
		tc, a_mark_and_an_end_that_come_late_are_not_taken_for_the_end,
		0, 2 * MODES);
	return support_main(s);
}
