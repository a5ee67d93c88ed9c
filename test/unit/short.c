/* SPDX-License-Identifier: MIT */
/*
 * What a short read says of what is behind it, when an end or a mark came in the
 * same edge: then no other edge follows.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "unit/rig.h"

/* A relay in copy mode that has not seen anything of its peers yet. */
static void open_copy(struct rig *g, struct wire *w)
{
	rig_open(g, RELAY_COPY);
	wire_plug(g, w);
}

static void say_and_finish(struct wire *w, size_t n)
{
	say(w->peer[0], 1, 0, n);
	shutdown(w->peer[0], SHUT_WR);
	await_acked(w->peer[0]);
}

static void close_copy(struct rig *g, struct wire *w)
{
	wire_hang_up(w);
	rig_finish(g, w);
	rig_close(g);
}

static void hear_to_the_end(int fd, size_t n)
{
	char c;

	hear(fd, 1, 0, n);
	ck_assert_int_eq(recv(fd, &c, 1, 0), 0);
}

static uint64_t reads(const struct rig *g)
{
	return counter_read(&g->env.tally.recv.calls);
}

START_TEST(bytes_with_their_fin_take_one_read)
{
	struct wire w;
	struct rig g;

	open_copy(&g, &w);
	say_and_finish(&w, 3000);
	wire_start(&w);
	rig_settle(&g);
	hear_to_the_end(w.peer[1], 3000);
	ck_assert_uint_eq(reads(&g), 1);
	ck_assert_uint_eq(counter_read(&g.env.tally.source_empty), 0);

	/* The other direction goes on. */
	say(w.peer[1], 2, 0, 100);
	rig_settle(&g);
	hear(w.peer[0], 2, 0, 100);
	close_copy(&g, &w);
	ck_assert_int_eq(w.how[0], RELAY_END_FIN);
	ck_assert(w.clean);
}
END_TEST

START_TEST(a_fin_that_comes_later_is_read)
{
	struct wire w;
	struct rig g;

	open_copy(&g, &w);
	wire_start(&w);
	say(w.peer[0], 1, 0, 3000);
	await_acked(w.peer[0]);
	rig_settle(&g);
	hear(w.peer[1], 1, 0, 3000);
	ck_assert_uint_eq(reads(&g), 1);
	shutdown(w.peer[0], SHUT_WR);
	await_acked(w.peer[0]);
	rig_settle(&g);
	ck_assert_uint_eq(reads(&g), 2);
	ck_assert_int_eq(w.relay.lane[0].state, LANE_SHUT);
	close_copy(&g, &w);
	ck_assert(w.clean);
}
END_TEST

/* A read that filled the buffer is not short, whatever is behind it. */
START_TEST(a_full_buffer_before_a_fin_proves_nothing)
{
	struct wire w;
	struct rig g;

	open_copy(&g, &w);
	say_and_finish(&w, 3 * RIG_BUF_SIZE);
	wire_start(&w);
	rig_settle(&g);
	hear_to_the_end(w.peer[1], 3 * RIG_BUF_SIZE);
	ck_assert_uint_eq(reads(&g), 4);
	close_copy(&g, &w);
	ck_assert(w.clean);
}
END_TEST

/* A read stops in front of the mark, and so is short. */
START_TEST(an_urgent_byte_before_a_fin_is_not_lost)
{
	char byte = 0;
	struct wire w;
	struct rig g;

	open_copy(&g, &w);
	say(w.peer[0], 1, 0, 3000);
	ck_assert_int_eq(send(w.peer[0], "!", 1, MSG_OOB), 1);
	say(w.peer[0], 1, 3000, 500);
	shutdown(w.peer[0], SHUT_WR);
	await_acked(w.peer[0]);
	wire_start(&w);
	rig_settle(&g);
	hear(w.peer[1], 1, 0, 3000);
	ck_assert_int_eq(recv(w.peer[1], &byte, 1, MSG_OOB), 1);
	ck_assert_int_eq(byte, '!');
	hear(w.peer[1], 1, 3000, 500);
	ck_assert_int_eq(recv(w.peer[1], &byte, 1, 0), 0);
	close_copy(&g, &w);
	ck_assert(w.clean);
}
END_TEST

/* Both in one edge, so that there is no telling which came first: read on. */
START_TEST(a_reset_behind_a_fin_is_still_a_reset)
{
	struct wire w;
	struct rig g;

	open_copy(&g, &w);
	say_and_finish(&w, 3000);
	peer_reset(w.peer[0]);
	w.peer[0] = -1;
	wire_start(&w);
	rig_settle(&g);
	hear(w.peer[1], 1, 0, 3000);
	rig_finish(&g, &w);
	ck_assert_int_eq(w.how[0], RELAY_END_RESET);
	ck_assert(!w.clean);
	close_copy(&g, &w);
}
END_TEST

static void reset_now(void *arg)
{
	struct wire *w = arg;

	peer_reset(w->peer[0]);
	w->peer[0] = -1;
}

/* The edge said FIN; the RST came before the read. */
START_TEST(a_reset_after_the_edge_with_the_fin_is_still_a_reset)
{
	struct wire w;
	struct rig g;

	open_copy(&g, &w);
	wire_start(&w);
	rig_settle(&g);
	say_and_finish(&w, 3000);
	rig_ambush(&g, reset_now, &w);
	rig_settle(&g);
	hear(w.peer[1], 1, 0, 3000);
	rig_finish(&g, &w);
	ck_assert_int_eq(w.how[0], RELAY_END_RESET);
	ck_assert(!w.clean);
	close_copy(&g, &w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("short");
	TCase *tc = support_case(s, "short");

	tcase_add_test(tc, bytes_with_their_fin_take_one_read);
	tcase_add_test(tc, a_fin_that_comes_later_is_read);
	tcase_add_test(tc, a_full_buffer_before_a_fin_proves_nothing);
	tcase_add_test(tc, an_urgent_byte_before_a_fin_is_not_lost);
	tcase_add_test(tc, a_reset_behind_a_fin_is_still_a_reset);
	tcase_add_test(tc, a_reset_after_the_edge_with_the_fin_is_still_a_reset);
	return support_main(s);
}
