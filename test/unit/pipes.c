/* SPDX-License-Identifier: MIT */
/*
 * The store of pipes: who is lent which, and what becomes of stalled ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/util.h"
#include "relay/pipes.h"
#include "support/peer.h"
#include "support/stamp.h"
#include "support/suite.h"

#define BUF_SIZE 4096

/* Turns that are long enough for a lane to count as stalled, or too few. */
#define LONG	 1000
#define NOT_LONG 3

static struct loop loop;
static struct relay_stats stats;
static struct bufs bufs;
static struct pipes store;
static int fds;

static void store_open(unsigned limit)
{
	fds = open_fds();
	ck_assert_int_eq(loop_init(&loop), 0);
	ck_assert_int_eq(bufs_init(&bufs, BUF_SIZE, &stats, &loop), 0);
	pipes_init(&store, PIPE_SIZE_MIN, limit, &bufs, &stats, &loop);
}

/* Everything must have been given back. */
static void store_close(void)
{
	ck_assert_uint_eq(counter_read(&stats.pipes_out), 0);
	ck_assert_uint_eq(counter_read(&stats.buffers_now), 0);
	pipes_fini(&store);
	ck_assert_uint_eq(counter_read(&stats.pipes_now), 0);
	bufs_fini(&bufs);
	loop_fini(&loop);
	ck_assert_int_eq(open_fds(), fds);
}

/* What a lane's fill would have done. */
static void put(struct conduit *c, unsigned stream, size_t n)
{
	static char bytes[PIPE_SIZE_MIN];

	stamp_fill(bytes, stream, c->held, n);
	ck_assert_int_eq(write(to_pipe(c)->in, bytes, n), n);
	c->held += n;
}

static void take_all(struct conduit **c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(pipe_take(&store, &c[i]), 0);
}

static void give_all(struct conduit **c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		c[i]->ops->give(c[i]);
}

/* @c is a buffer that holds the first @n bytes of @stream, and no more. */
static void expect_spilled(struct conduit *c, unsigned stream, size_t n)
{
	const struct buf *b = container_of(c, struct buf, conduit);

	ck_assert_ptr_eq(c->ops, &buf_ops);
	ck_assert_uint_eq(c->held, n);
	ck_assert_int_eq(stamp_check(b->data + b->head, stream, 0, n), -1);
}

static void expect_empty_pipe(struct conduit *c)
{
	int unread;

	ck_assert_ptr_eq(c->ops, &pipe_ops);
	ck_assert_uint_eq(c->held, 0);
	ck_assert_int_eq(ioctl(to_pipe(c)->out, FIONREAD, &unread), 0);
	ck_assert_int_eq(unread, 0);
}

START_TEST(a_pipe_is_as_large_as_the_kernel_says)
{
	struct conduit *c;

	store_open(2);
	store.size = 100000; /* not what any kernel makes */
	ck_assert_int_eq(pipe_take(&store, &c), 0);
	expect_empty_pipe(c);
	ck_assert_uint_eq(c->size, fcntl(to_pipe(c)->in, F_GETPIPE_SZ));
	ck_assert_uint_ge(c->size, PIPE_SIZE_MIN);
	ck_assert_int_ne(fcntl(to_pipe(c)->in, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_ne(fcntl(to_pipe(c)->out, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_ne(fcntl(to_pipe(c)->in, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_ne(fcntl(to_pipe(c)->out, F_GETFD) & FD_CLOEXEC, 0);
	give_all(&c, 1);
	store_close();
}
END_TEST

START_TEST(the_pipe_given_back_last_is_lent_first)
{
	struct conduit *c[3], *again;

	store_open(3);
	take_all(c, 3);
	c[0]->ops->give(c[0]);
	c[2]->ops->give(c[2]);
	c[1]->ops->give(c[1]);
	for (int i = 0; i < 3; i++) {
		int order[] = { 1, 2, 0 };

		ck_assert_int_eq(pipe_take(&store, &again), 0);
		ck_assert_ptr_eq(again, c[order[i]]);
	}
	give_all(c, 3);
	ck_assert_uint_eq(counter_read(&stats.pipes_made), 3);
	ck_assert_uint_eq(counter_read(&stats.pipes_lent), 6);
	ck_assert_uint_eq(counter_read(&stats.pipes_out_max), 3);
	store_close();
}
END_TEST

START_TEST(no_more_than_the_limit_are_made)
{
	struct conduit *c[3], *one = NULL;

	store_open(3);
	take_all(c, 3);
	ck_assert_int_eq(pipe_take(&store, &one), FALLBACK_pipe_share);
	ck_assert_ptr_null(one);
	ck_assert_uint_eq(counter_read(&stats.pipes_now), 3);
	give_all(c, 1);
	ck_assert_int_eq(pipe_take(&store, &c[0]), 0);
	ck_assert_uint_eq(counter_read(&stats.pipes_made), 3);
	give_all(c, 3);
	store_close();
}
END_TEST

START_TEST(a_pipe_with_bytes_left_is_closed_and_never_lent_again)
{
	struct conduit *c;

	store_open(1);
	take_all(&c, 1);
	put(c, 1, 100);
	give_all(&c, 1);
	ck_assert_uint_eq(counter_read(&stats.pipes_now), 0);
	ck_assert_int_eq(pipe_take(&store, &c), 0);
	expect_empty_pipe(c);
	ck_assert_uint_eq(counter_read(&stats.pipes_made), 2);
	give_all(&c, 1);
	store_close();
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

/* FAULTS 7, the half of it that is about pipes. */
START_TEST(a_kernel_that_refused_is_asked_again_only_after_a_while)
{
	struct conduit *c[2];
	rlim_t was;
	int n = 0;

	store_open(2);
	take_all(c, 1);
	was = set_descriptors(3);
	ck_assert_int_eq(pipe_take(&store, &c[1]), FALLBACK_pipe_descriptors);
	set_descriptors(was);
	while (pipe_take(&store, &c[1]) == FALLBACK_pipe_descriptors) {
		n++;
		ck_assert_int_le(n, 2000);
	}
	ck_assert_int_ge(n, 10);
	expect_empty_pipe(c[1]);
	give_all(c, 2);
	store_close();
}
END_TEST

START_TEST(a_free_pipe_is_lent_though_the_kernel_has_refused)
{
	struct conduit *c[2];
	rlim_t was;

	store_open(2);
	take_all(c, 1);
	was = set_descriptors(3);
	ck_assert_int_ne(pipe_take(&store, &c[1]), FALLBACK_none);
	give_all(c, 1);
	ck_assert_int_eq(pipe_take(&store, &c[0]), 0);
	set_descriptors(was);
	give_all(c, 1);
	store_close();
}
END_TEST

START_TEST(the_longest_stalled_is_spilled_and_its_bytes_are_in_order)
{
	struct conduit *c[3], *asks = NULL;

	store_open(3);
	take_all(c, 3);
	for (unsigned i = 0; i < 3; i++)
		put(c[i], i, 100 + i);
	pipe_stalls(to_pipe(c[1]));
	pipe_stalls(to_pipe(c[2]));
	pipe_stalls(to_pipe(c[0]));
	loop.turns += LONG;

	ck_assert_int_eq(pipe_take(&store, &asks), 0);
	expect_empty_pipe(asks);
	expect_spilled(c[1], 1, 101);
	ck_assert_ptr_eq(c[0]->ops, &pipe_ops);
	ck_assert_ptr_eq(c[2]->ops, &pipe_ops);
	c[1]->ops->give(c[1]);

	ck_assert_int_eq(pipe_take(&store, &c[1]), 0);
	expect_spilled(c[2], 2, 102);
	give_all(c, 3);
	give_all(&asks, 1);
	ck_assert_uint_eq(counter_read(&stats.spill.bytes), 203);
	store_close();
}
END_TEST

START_TEST(a_pipe_that_stalled_a_moment_ago_is_left_alone)
{
	struct conduit *c[2], *asks = NULL;

	store_open(2);
	take_all(c, 2);
	put(c[0], 0, 100);
	pipe_stalls(to_pipe(c[0]));
	loop.turns += NOT_LONG;
	ck_assert_int_eq(pipe_take(&store, &asks), FALLBACK_pipe_share);
	ck_assert_ptr_null(asks);
	ck_assert_ptr_eq(c[0]->ops, &pipe_ops);
	ck_assert_uint_eq(c[0]->held, 100);
	give_all(c, 2);
	store_close();
}
END_TEST

START_TEST(a_sink_that_has_moved_and_stalls_again_is_not_the_longest)
{
	struct conduit *c[2], *asks = NULL;

	store_open(2);
	take_all(c, 2);
	for (unsigned i = 0; i < 2; i++)
		put(c[i], i, 100);
	pipe_stalls(to_pipe(c[0]));
	pipe_stalls(to_pipe(c[1]));
	pipe_stalls(to_pipe(c[0]));
	loop.turns += LONG;
	ck_assert_int_eq(pipe_take(&store, &asks), 0);
	expect_spilled(c[1], 1, 100);
	ck_assert_ptr_eq(c[0]->ops, &pipe_ops);
	give_all(c, 2);
	give_all(&asks, 1);
	store_close();
}
END_TEST

START_TEST(a_stalled_pipe_given_back_is_stalled_no_more)
{
	struct conduit *c[2], *asks = NULL;

	store_open(2);
	take_all(c, 2);
	put(c[0], 0, 100);
	pipe_stalls(to_pipe(c[0]));
	pipe_stalls(to_pipe(c[1]));
	give_all(c, 2); /* closes the one, keeps the other */
	take_all(c, 2);
	loop.turns += LONG;
	ck_assert_int_eq(pipe_take(&store, &asks), FALLBACK_pipe_share);
	give_all(c, 2);
	store_close();
}
END_TEST

START_TEST(a_full_pipe_is_spilled_whole)
{
	struct conduit *c, *asks = NULL;
	size_t held;

	store_open(1);
	take_all(&c, 1);
	for (held = 0; held < c->size; held += 1024)
		put(c, 9, 1024); /* a pipe fills whole pages with these */
	ck_assert_uint_gt(held, 10 * BUF_SIZE);
	pipe_stalls(to_pipe(c));
	loop.turns += LONG;
	ck_assert_int_eq(pipe_take(&store, &asks), 0);
	expect_empty_pipe(asks);
	expect_spilled(c, 9, held);
	give_all(&c, 1);
	give_all(&asks, 1);
	store_close();
}
END_TEST

/* The store is trimmed, as often as asked. */
static void time_passes(int times)
{
	while (times-- > 0)
		timers_run(&loop.timers, timers_next(&loop.timers));
}

START_TEST(free_pipes_that_nobody_needs_are_closed_but_one)
{
	struct conduit *c[5];

	store_open(5);
	take_all(c, 5);
	give_all(c, 5);
	ck_assert_uint_eq(counter_read(&stats.pipes_now), 5);
	ck_assert_uint_gt(timers_next(&loop.timers), now_ns() + NS_PER_SEC);
	time_passes(3);
	ck_assert_uint_eq(counter_read(&stats.pipes_now), 1);
	ck_assert_uint_eq(store.freelist.n, 1);
	ck_assert_uint_eq(loop.timers.n, 0); /* an idle thread sleeps */
	ck_assert_int_eq(pipe_take(&store, &c[0]), 0);
	ck_assert_uint_eq(counter_read(&stats.pipes_made), 5);
	give_all(c, 1);
	store_close();
}
END_TEST

START_TEST(free_pipes_that_are_needed_now_and_then_are_kept)
{
	struct conduit *c[5];

	store_open(5);
	take_all(c, 5);
	give_all(c, 5);
	for (int i = 0; i < 5; i++) {
		time_passes(1);
		take_all(c, 3);
		give_all(c, 3);
	}
	ck_assert_uint_eq(counter_read(&stats.pipes_now), 3);
	ck_assert_uint_eq(counter_read(&stats.pipes_made), 5);
	store_close();
}
END_TEST

START_TEST(free_pipes_are_closed_when_descriptors_are_short)
{
	struct conduit *c[4];

	store_open(4);
	take_all(c, 4);
	give_all(c, 3);
	ck_assert_uint_eq(pipes_close_free(&store), 3);
	ck_assert_uint_eq(counter_read(&stats.pipes_now), 1);
	ck_assert_uint_eq(pipes_close_free(&store), 0);
	give_all(&c[3], 1);
	take_all(c, 4);
	give_all(c, 4);
	store_close();
}
END_TEST

START_TEST(a_probe_tells_the_size_and_keeps_the_pipe)
{
	struct conduit *c;
	rlim_t was;

	store_open(1);
	was = set_descriptors(3);
	ck_assert_uint_eq(pipes_probe(&store), 0);
	set_descriptors(was);
	store.holdoff = 0;
	ck_assert_uint_eq(pipes_probe(&store), PIPE_SIZE_MIN);
	ck_assert_uint_eq(store.freelist.n, 1);
	take_all(&c, 1);
	ck_assert_uint_eq(counter_read(&stats.pipes_made), 1);
	give_all(&c, 1);
	store_close();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pipes");
	TCase *tc = support_case(s, "pipes");

	tcase_add_test(tc, a_pipe_is_as_large_as_the_kernel_says);
	tcase_add_test(tc, the_pipe_given_back_last_is_lent_first);
	tcase_add_test(tc, no_more_than_the_limit_are_made);
	tcase_add_test(tc, a_pipe_with_bytes_left_is_closed_and_never_lent_again);
	tcase_add_test(tc,
		       a_kernel_that_refused_is_asked_again_only_after_a_while);
	tcase_add_test(tc, a_free_pipe_is_lent_though_the_kernel_has_refused);
	tcase_add_test(
		tc, the_longest_stalled_is_spilled_and_its_bytes_are_in_order);
	tcase_add_test(tc, a_pipe_that_stalled_a_moment_ago_is_left_alone);
	tcase_add_test(
		tc, a_sink_that_has_moved_and_stalls_again_is_not_the_longest);
	tcase_add_test(tc, a_stalled_pipe_given_back_is_stalled_no_more);
	tcase_add_test(tc, a_full_pipe_is_spilled_whole);
	tcase_add_test(tc, free_pipes_that_nobody_needs_are_closed_but_one);
	tcase_add_test(tc, free_pipes_that_are_needed_now_and_then_are_kept);
	tcase_add_test(tc, free_pipes_are_closed_when_descriptors_are_short);
	tcase_add_test(tc, a_probe_tells_the_size_and_keeps_the_pipe);
	return support_main(s);
}
