/* SPDX-License-Identifier: MIT */
/*
 * What a short read says of what is behind it: when an end or a mark came in the
 * same edge, no other edge follows; and into a pipe it says little.
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

static uint64_t recvs(const struct rig *g)
{
	return counter_read(&g->env.stats.recv.calls);
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
	ck_assert_uint_eq(recvs(&g), 1);
	ck_assert_uint_eq(counter_read(&g.env.stats.source_empty), 0);

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
	ck_assert_uint_eq(recvs(&g), 1);
	shutdown(w.peer[0], SHUT_WR);
	await_acked(w.peer[0]);
	rig_settle(&g);
	ck_assert_uint_eq(recvs(&g), 2);
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
	ck_assert_uint_eq(recvs(&g), 4);
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

/* What one thread sends lies side by side in memory, and what lies side by side
 * shares a slot: so there is always something else in between. */
static void say_in_crumbs(int fd, uint64_t at, unsigned crumbs)
{
	int other[2];

	tcp_pair(other);
	peer_nodelay(other[0]);
	for (unsigned n = 0; n < crumbs; n++) {
		say(fd, 1, at + n * 20, 20);
		say(other[0], 2, 0, 100);
		hear(other[1], 2, 0, 100);
	}
	close(other[0]);
	close(other[1]);
}

/* A pipe of 16 slots takes 320 bytes of these, and the rest has been told of. */
START_TEST(what_a_pipe_had_no_slots_for_is_read_without_an_edge)
{
	struct wire w;
	struct rig g;

	rig_open(&g, RELAY_SPLICE);
	wire_lay(&g, &w);
	peer_nodelay(w.peer[0]);
	for (uint64_t at = 0; at < 5 * 800; at += 800) {
		say_in_crumbs(w.peer[0], at, 40);
		await_acked(w.peer[0]);
		rig_spin(&g);
		hear(w.peer[1], 1, at, 800);
		rig_rest(&g);
	}
	/* Once each time: after that it is read until EAGAIN. */
	ck_assert_uint_eq(counter_read(&g.loop.recheck.readable), 5);
	ck_assert_uint_eq(counter_read(&g.loop.recheck.added), 5);
	ck_assert_uint_eq(w.relay.lane[0].by_pipe, 4000);
	wire_hang_up(&w);
	rig_finish(&g, &w);
	rig_close(&g);
}
END_TEST

/* Each edge brings a crumb, and takes a pipe's slots full from those that lie
 * there: all the while it ticks. */
START_TEST(what_lies_there_is_not_put_off_by_what_comes)
{
	static const unsigned crumbs = 40 * 16, each = 20;
	uint64_t at = crumbs * each;
	struct watch *other;
	struct wire w[2];
	struct rig g;
	int edges;

	rig_open(&g, RELAY_SPLICE);
	wire_lay(&g, &w[0]);
	wire_lay(&g, &w[1]);
	rig_settle(&g);
	peer_nodelay(w[0].peer[0]);
	other = &w[1].relay.side[0].watch;
	say_in_crumbs(w[0].peer[0], 0, crumbs);
	await_acked(w[0].peer[0]);
	for (edges = 0; w[0].relay.lane[0].delivered < at; edges++) {
		say(w[0].peer[0], 1, at, each);
		at += each;
		await_acked(w[0].peer[0]);
		for (int n = 0; n < 20 || !timer_is_set(&g.loop.recheck.tick);
		     n++) {
			recheck_add(&g.loop.recheck, other, true);
			recheck_turn(&g.loop.recheck, true);
		}
		sleep_ms(1);
		loop_turn(&g.loop, 0);
	}
	ck_assert_int_le(edges, 20);
	hear(w[0].peer[1], 1, 0, at);
	for (int i = 0; i < 2; i++) {
		wire_hang_up(&w[i]);
		rig_finish(&g, &w[i]);
	}
	rig_close(&g);
}
END_TEST

START_TEST(a_message_by_pipe_takes_one_read)
{
	const struct relay_call *reads;
	struct wire w[2];
	struct rig g;

	rig_open(&g, RELAY_SPLICE);
	wire_lay(&g, &w[0]);
	wire_lay(&g, &w[1]);
	rig_settle(&g);
	reads = &g.env.stats.splice_in; /* and not so often that it ticks */
	for (uint64_t at = 0; at < 25000; at += 1000) {
		for (int i = 0; i < 2; i++) {
			say(w[i].peer[0], 1, at, 1000);
			await_acked(w[i].peer[0]);
		}
		loop_turn(&g.loop, SOON_MS);
		for (int i = 0; i < 2; i++)
			hear(w[i].peer[1], 1, at, 1000);
	}
	ck_assert_uint_eq(counter_read(&reads->bytes), 50000);
	ck_assert_uint_eq(counter_read(&reads->calls), 50);
	ck_assert_uint_eq(counter_read(&g.env.stats.source_empty), 0);
	for (int i = 0; i < 2; i++) {
		wire_hang_up(&w[i]);
		rig_finish(&g, &w[i]);
	}
	rig_close(&g);
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
	tcase_add_test(tc, what_a_pipe_had_no_slots_for_is_read_without_an_edge);
	tcase_add_test(tc, what_lies_there_is_not_put_off_by_what_comes);
	tcase_add_test(tc, a_message_by_pipe_takes_one_read);
	return support_main(s);
}
