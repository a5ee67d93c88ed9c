/* SPDX-License-Identifier: MIT */
/*
 * Relays that fall silent, or whose owner says that a side is dead: FAULTS 14,
 * something bounds time. Where it can matter, _i is the mode.
 *
 * Linked with -Wl,--wrap=realloc, which is how deadlines get their memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "unit/rig.h"

#define MODES rig_modes()

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);

static bool no_memory;

void *__wrap_realloc(void *p, size_t n)
{
	return no_memory ? NULL : __real_realloc(p, n);
}

/* Opens it with limits, 0 for none, and starts the relay. */
static void open_limited(struct rig *g, struct wire *w, int mode,
			 unsigned idle_ms, unsigned half_close_ms)
{
	rig_open(g, (enum relay_mode)mode);
	g->env.idle_ms = idle_ms;
	g->env.half_close_ms = half_close_ms;
	wire_lay(g, w);
}

/* Over it is, for this reason, @ms or more after @since and not for long. */
static void expect_cut(struct rig *g, struct wire *w, enum relay_stop why,
		       int64_t since, int ms)
{
	rig_finish(g, w);
	ck_assert_int_ge(now_ms() - since, ms - 1);
	ck_assert_int_eq(w->relay.stop, why);
	ck_assert(!w->clean);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(peer_expect_reset(w->peer[i], SOON_MS), 0);
}

START_TEST(a_relay_in_which_nothing_moves_is_cut_off_after_idle_ms)
{
	int64_t start = now_ms();
	struct wire w;
	struct rig g;

	open_limited(&g, &w, RELAY_COPY, 300, 0);
	expect_cut(&g, &w, RELAY_IDLE, start, 300);
	rig_close(&g);
}
END_TEST

START_TEST(want_of_memory_at_the_start_does_not_lift_the_limit)
{
	int64_t start = now_ms();
	struct wire w;
	struct rig g;

	no_memory = true;
	open_limited(&g, &w, RELAY_COPY, 300, 0);
	rig_turns(&g, 5);
	no_memory = false;
	expect_cut(&g, &w, RELAY_IDLE, start, 300);
	rig_close(&g);
}
END_TEST

START_TEST(a_byte_now_and_then_either_way_keeps_it)
{
	struct wire w;
	struct rig g;
	int64_t last = 0;

	open_limited(&g, &w, RELAY_SPLICE, 800, 0);
	rig_spin(&g);
	for (unsigned n = 0; n < 16; n++) {
		unsigned i = n & 1;

		sleep_ms(100);
		last = now_ms();
		say(w.peer[i], i, n / 2, 1);
		hear(w.peer[!i], i, n / 2, 1);
	}
	rig_rest(&g);
	ck_assert_int_eq(atomic_load(&w.done), 0);
	expect_cut(&g, &w, RELAY_IDLE, last, 700);
	rig_close(&g);
}
END_TEST

START_TEST(after_a_fin_the_other_has_half_close_ms)
{
	int who = _i;
	struct wire w;
	struct rig g;
	int64_t fin;

	open_limited(&g, &w, RELAY_SPLICE, 0, 300);
	rig_settle(&g);
	for (int64_t end = now_ms() + 400; now_ms() < end;)
		rig_settle(&g); /* both are open: there is no limit */
	ck_assert_int_eq(atomic_load(&w.done), 0);
	fin = now_ms();
	shutdown(w.peer[who], SHUT_WR);
	rig_finish(&g, &w);
	ck_assert_int_ge(now_ms() - fin, 299);
	ck_assert_int_eq(w.relay.stop, RELAY_HALF_CLOSED);
	ck_assert_int_eq(w.how[who], RELAY_END_FIN);
	ck_assert_int_eq(w.how[!who], RELAY_END_OPEN);
	ck_assert_int_eq(peer_expect_reset(w.peer[who], SOON_MS), 0);
	rig_close(&g);
}
END_TEST

START_TEST(an_answer_in_time_is_not_cut_off)
{
	struct wire w;
	struct rig g;

	open_limited(&g, &w, _i, 60000, 30000);
	rig_spin(&g);
	shutdown(w.peer[0], SHUT_WR);
	ck_assert_int_eq(peer_expect_eof(w.peer[1], SOON_MS), 0);
	say(w.peer[1], 2, 0, 1000);
	shutdown(w.peer[1], SHUT_WR);
	hear(w.peer[0], 2, 0, 1000);
	ck_assert_int_eq(peer_expect_eof(w.peer[0], SOON_MS), 0);
	wire_wait(&w);
	ck_assert(w.clean);
	rig_rest(&g);
	/* nothing is left that would wake the thread up for it */
	ck_assert_uint_eq(g.loop.timers.n,
			  timer_is_set(&g.env.pipes.freelist.trim));
	rig_close(&g);
}
END_TEST

START_TEST(a_reader_that_has_stalled_counts_as_silence)
{
	struct wire w;
	struct rig g;

	open_limited(&g, &w, _i, 1500, 0); /* to fill it takes less */
	rig_spin(&g);
	say_until_full(w.peer[0], 1, 0, 50);
	wire_wait(&w);
	ck_assert_int_eq(w.relay.stop, RELAY_IDLE);
	ck_assert_uint_gt(counter_read(&g.env.stats.dropped[DROP_stopped]), 0);
	ck_assert_int_eq(peer_drain(w.peer[1], SOON_MS), -ECONNRESET);
	rig_close(&g);
}
END_TEST

/* The owner knows it, TCP does not yet: nothing will be read behind what has
 * arrived, so nobody must wait for an end. */
START_TEST(what_a_dead_side_has_said_is_still_delivered)
{
	struct wire w;
	struct rig g;

	rig_open(&g, (enum relay_mode)_i);
	wire_lay(&g, &w);
	rig_settle(&g);
	say(w.peer[0], 1, 0, 100000);
	relay_fail(&w.relay, 0, ETIMEDOUT);
	rig_spin(&g);
	hear(w.peer[1], 1, 0, 100000);
	ck_assert_int_eq(peer_expect_reset(w.peer[1], SOON_MS), 0);
	wire_wait(&w);
	ck_assert_int_eq(w.how[0], RELAY_END_ERROR);
	ck_assert_int_eq(w.relay.side[0].error, ETIMEDOUT);
	ck_assert_int_eq(w.how[1], RELAY_END_OPEN);
	ck_assert_int_eq(peer_expect_reset(w.peer[0], SOON_MS), 0);
	rig_close(&g);
}
END_TEST

START_TEST(a_dead_side_ends_an_idle_relay_at_once)
{
	struct wire w;
	struct rig g;

	rig_open(&g, (enum relay_mode)_i);
	wire_lay(&g, &w);
	rig_settle(&g);
	relay_fail(&w.relay, 1, EHOSTUNREACH);
	rig_finish(&g, &w);
	ck_assert_int_eq(w.how[1], RELAY_END_ERROR);
	ck_assert_int_eq(w.relay.stop, RELAY_RUNS);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(peer_expect_reset(w.peer[i], SOON_MS), 0);
	rig_close(&g);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("quiet");
	TCase *tc = support_case(s, "quiet");

	/* how long nothing moves does not depend on how it would */
	tcase_add_test(tc,
		       a_relay_in_which_nothing_moves_is_cut_off_after_idle_ms);
	tcase_add_test(tc, want_of_memory_at_the_start_does_not_lift_the_limit);
	tcase_add_test(tc, a_byte_now_and_then_either_way_keeps_it);
	tcase_add_loop_test(tc, after_a_fin_the_other_has_half_close_ms, 0, 2);
	tcase_add_loop_test(tc, an_answer_in_time_is_not_cut_off, 0, MODES);
	tcase_add_loop_test(tc, a_reader_that_has_stalled_counts_as_silence, 0,
			    MODES);
	tcase_add_loop_test(tc, what_a_dead_side_has_said_is_still_delivered, 0,
			    MODES);
	tcase_add_loop_test(tc, a_dead_side_ends_an_idle_relay_at_once, 0, MODES);
	return support_main(s);
}
