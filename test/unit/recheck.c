/* SPDX-License-Identifier: MIT */
/*
 * A socket that is taken for empty without a proof: it is asked about before
 * anybody sleeps on it, and at the cost of one call for all of them.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "unit/rig.h"

#define MANY 100

static struct loop loop;
static int told, polls;
static bool poll_fails, timer_fails;

/* The loop's. The peers of the test poll, too, but wait. */
int __real_poll(struct pollfd *p, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *p, nfds_t n, int timeout);

int __wrap_poll(struct pollfd *p, nfds_t n, int timeout)
{
	if (timeout)
		return __real_poll(p, n, timeout);
	polls++;
	if (!poll_fails)
		return __real_poll(p, n, 0);
	errno = ENOMEM;
	return -1;
}

int __real_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old);

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old)
{
	if (!timer_fails)
		return __real_timerfd_settime(fd, flags, when, old);
	errno = ENOMEM;
	return -1;
}

static void seen(struct watch *w)
{
	(void)w;
	told++;
}

/* Watched sockets of which nothing is to be told any more; @bytes were sent to
 * each, told of, and not read. */
static void watch_some(struct watch *w, int fd[][2], int n, size_t bytes)
{
	ck_assert_int_eq(loop_init(&loop), 0);
	for (int i = 0; i < n; i++) {
		tcp_pair(fd[i]);
		peer_nodelay(fd[i][0]);
		peer_nonblock(fd[i][1]);
		if (bytes)
			say(fd[i][0], 1, 0, bytes);
		ck_assert_int_eq(
			loop_watch(&loop, &w[i], fd[i][1], LOOP_SOCKET, seen), 0);
	}
	for (int i = 0; i < 3; i++)
		loop_turn(&loop, 0);
	for (int i = 0; i < n; i++)
		ck_assert_uint_eq(!!(w[i].ready & LOOP_READABLE), bytes > 0);
	told = polls = 0;
	poll_fails = timer_fails = false;
}

static void close_some(int fd[][2], int n)
{
	for (int i = 0; i < n; i++) {
		close(fd[i][0]);
		close(fd[i][1]);
	}
	loop_fini(&loop);
}

START_TEST(what_lies_there_is_told_before_the_loop_sleeps)
{
	int64_t start = now_ms();
	struct watch w;
	int fd[1][2];

	watch_some(&w, fd, 1, 3);
	recheck_add(&loop.recheck, &w, true);
	ck_assert_uint_eq(w.ready & LOOP_READABLE, 0);
	loop_turn(&loop, 0);
	ck_assert_int_eq(told, 0); /* it does not sleep, so there is time */
	while (!told && now_ms() < start + SOON_MS)
		loop_turn(&loop, SOON_MS);
	ck_assert_int_lt(now_ms(), start + SOON_MS);
	ck_assert_uint_ne(w.ready & LOOP_READABLE, 0);
	ck_assert_uint_ne(w.ready & WATCH_UNREAD, 0);
	ck_assert_uint_eq(counter_read(&loop.recheck.readable), 1);
	close_some(fd, 1);
}
END_TEST

START_TEST(where_nothing_lies_it_asks_once_and_sleeps)
{
	int64_t start = now_ms();
	struct watch w;
	int fd[1][2];

	watch_some(&w, fd, 1, 0);
	recheck_add(&loop.recheck, &w, true);
	loop_turn(&loop, 50);
	ck_assert_int_ge(now_ms(), start + 45);
	for (int i = 0; i < 20; i++)
		loop_turn(&loop, 1);
	ck_assert_int_eq(told, 0);
	ck_assert_int_eq(polls, 1);
	ck_assert_uint_eq(counter_read(&loop.recheck.added), 1);
	ck_assert_uint_eq(counter_read(&loop.recheck.polled), 1);
	ck_assert_uint_eq(counter_read(&loop.recheck.readable), 0);
	close_some(fd, 1);
}
END_TEST

START_TEST(an_end_or_an_urgent_byte_is_told_too)
{
	struct watch w[2];
	int fd[2][2];

	watch_some(w, fd, 2, 0);
	shutdown(fd[0][0], SHUT_WR);
	ck_assert_int_eq(send(fd[1][0], "!", 1, MSG_OOB), 1);
	while (loop_turn(&loop, 10) ||
	       !(w[0].ready & EPOLLRDHUP && w[1].ready & EPOLLPRI))
		; /* the edges are over */
	w[0].ready = w[1].ready = 0;
	recheck_add(&loop.recheck, &w[0], true);
	recheck_add(&loop.recheck, &w[1], true);
	loop_turn(&loop, SOON_MS);
	ck_assert_uint_eq(w[0].ready & (EPOLLRDHUP | LOOP_READABLE),
			  EPOLLRDHUP | LOOP_READABLE);
	ck_assert_uint_eq(w[1].ready & (EPOLLPRI | LOOP_READABLE),
			  EPOLLPRI | LOOP_READABLE);
	close_some(fd, 2);
}
END_TEST

START_TEST(an_edge_settles_the_matter_and_nobody_is_asked)
{
	struct watch w;
	int fd[1][2];

	watch_some(&w, fd, 1, 0);
	for (unsigned n = 0; n < 3; n++) {
		recheck_add(&loop.recheck, &w, true);
		say(fd[0][0], 1, 2 * n, 2);
		await_acked(fd[0][0]);
		loop_turn(&loop, 0);
		ck_assert_uint_ne(w.ready & LOOP_READABLE, 0);
		ck_assert_uint_eq(w.ready & WATCH_RECHECKED, 0);
		loop_turn(&loop, 1);
	}
	ck_assert_int_eq(told, 3);
	ck_assert(!recheck_pending(&loop.recheck));
	ck_assert_int_eq(polls, 0);
	ck_assert_uint_eq(counter_read(&loop.recheck.added), 3);
	ck_assert_uint_eq(counter_read(&loop.recheck.polled), 0);
	close_some(fd, 1);
}
END_TEST

static void run_again(struct job *j)
{
	loop_again(&loop, j);
}

START_TEST(a_loop_that_never_sleeps_asks_after_a_few_turns)
{
	struct job j = { .fn = run_again };
	struct watch w;
	int fd[1][2];

	watch_some(&w, fd, 1, 3);
	list_init(&j.node);
	loop_again(&loop, &j);
	loop_turn(&loop, -1);
	recheck_add(&loop.recheck, &w, true);
	for (int i = 0; i < 7; i++)
		loop_turn(&loop, -1);
	ck_assert_int_eq(polls, 0); /* not in each */
	loop_turn(&loop, -1);
	ck_assert_int_eq(told, 1);
	close_some(fd, 1);
}
END_TEST

START_TEST(many_are_asked_about_at_once)
{
	static struct watch w[MANY];
	static int fd[MANY][2];

	watch_some(w, fd, MANY, 3);
	for (int i = 0; i < MANY; i++)
		recheck_add(&loop.recheck, &w[i], true);
	loop_turn(&loop, SOON_MS);
	ck_assert_int_eq(told, MANY);
	ck_assert_int_eq(polls, 2); /* of up to 64 */
	ck_assert(!recheck_pending(&loop.recheck));
	close_some(fd, MANY);
}
END_TEST

START_TEST(to_doubt_twice_is_to_doubt_once)
{
	struct watch w[2];
	int fd[2][2];

	watch_some(w, fd, 2, 3);
	recheck_add(&loop.recheck, &w[0], true);
	recheck_add(&loop.recheck, &w[1], true);
	recheck_add(&loop.recheck, &w[0], true);
	loop_turn(&loop, SOON_MS);
	ck_assert_int_eq(told, 2);
	ck_assert_uint_eq(counter_read(&loop.recheck.polled), 2);
	close_some(fd, 2);
}
END_TEST

START_TEST(what_is_settled_is_not_asked_about)
{
	struct watch w[2];
	int fd[2][2];

	watch_some(w, fd, 2, 3);
	recheck_add(&loop.recheck, &w[0], true);
	recheck_add(&loop.recheck, &w[1], true);
	recheck_cancel(&w[0]);
	recheck_cancel(&w[0]); /* no harm */
	loop_turn(&loop, SOON_MS);
	ck_assert_uint_eq(w[0].ready & LOOP_READABLE, 0);
	ck_assert_uint_ne(w[1].ready & LOOP_READABLE, 0);
	close_some(fd, 2);
}
END_TEST

START_TEST(when_poll_fails_it_is_better_to_read)
{
	struct watch w;
	int fd[1][2];

	watch_some(&w, fd, 1, 3);
	recheck_add(&loop.recheck, &w, true);
	poll_fails = true;
	loop_turn(&loop, SOON_MS);
	ck_assert_uint_ne(w.ready & LOOP_READABLE, 0);
	close_some(fd, 1);
}
END_TEST

/* Has it asked so often that it would begin to tick, if not for the pauses. */
static void ask_150_times(struct watch *w, unsigned pause_ms)
{
	for (int n = 0; n < 150; n++) {
		recheck_add(&loop.recheck, w, true);
		ck_assert(!recheck_turn(&loop.recheck, true));
		if (pause_ms)
			sleep_ms(pause_ms);
	}
}

/* Has it begin to tick, however busy the machine, and not for once only. */
static void ask_often(struct watch *w)
{
	int64_t end = now_ms() + SOON_MS;

	while (!timer_is_set(&loop.recheck.tick)) {
		ck_assert_int_lt(now_ms(), end);
		recheck_add(&loop.recheck, w, true);
		ck_assert(!recheck_turn(&loop.recheck, true));
	}
	for (int n = 0; n < 20; n++)
		recheck_add(&loop.recheck, w, true);
}

/* Without a tick there is a call before each sleep. */
START_TEST(what_is_often_in_doubt_is_asked_about_by_the_clock)
{
	struct watch w;
	int fd[1][2];

	watch_some(&w, fd, 1, 0);
	ask_often(&w);
	polls = 0;
	for (int n = 0; n < 20; n++) {
		recheck_add(&loop.recheck, &w, true);
		loop_turn(&loop, 0);
	}
	ck_assert_int_le(polls, (int)counter_read(&loop.recheck.ticks));

	/* Nothing came: it asks once more, and then it is at rest. */
	while (timer_is_set(&loop.recheck.tick))
		loop_turn(&loop, SOON_MS);
	ck_assert(!recheck_pending(&loop.recheck));
	ck_assert_int_ge(polls, 1);
	ck_assert_int_le(polls, (int)counter_read(&loop.recheck.ticks));
	ck_assert_int_eq(told, 0);
	polls = 0;
	loop_turn(&loop, 20);
	ck_assert_int_eq(polls, 0);
	close_some(fd, 1);
}
END_TEST

START_TEST(what_is_seldom_in_doubt_is_asked_about_before_each_sleep)
{
	struct watch w;
	int fd[1][2];

	watch_some(&w, fd, 1, 0);
	ask_150_times(&w, 1);
	ck_assert(!timer_is_set(&loop.recheck.tick));
	ck_assert_int_eq(polls, 150);
	close_some(fd, 1);
}
END_TEST

/* Turns until @w is told of. Return: how often it ticked meanwhile. */
static uint64_t ticks_until_told(struct watch *w)
{
	uint64_t ticks = counter_read(&loop.recheck.ticks);

	while (!(w->ready & LOOP_READABLE))
		loop_turn(&loop, SOON_MS);
	return counter_read(&loop.recheck.ticks) - ticks;
}

START_TEST(what_lies_there_is_told_by_the_second_tick)
{
	struct watch w[2];
	int fd[2][2];

	watch_some(w, fd, 2, 0);
	say(fd[1][0], 1, 0, 3);
	ticks_until_told(&w[1]);

	ask_often(&w[0]);
	recheck_add(&loop.recheck, &w[1], true);
	ck_assert_uint_eq(ticks_until_told(&w[1]), 2);

	/* When it ticks for the last time nothing stays in doubt. */
	ask_often(&w[0]);
	while (list_empty(&loop.recheck.old))
		loop_turn(&loop, SOON_MS);
	ck_assert(timer_is_set(&loop.recheck.tick));
	recheck_add(&loop.recheck, &w[1], true);
	ck_assert_uint_eq(ticks_until_told(&w[1]), 1);
	ck_assert(!timer_is_set(&loop.recheck.tick));
	close_some(fd, 2);
}
END_TEST

/* Most are settled before they are as old as that. */
START_TEST(a_tick_asks_about_none_that_is_younger_than_the_last)
{
	static struct watch w[20];
	static int fd[20][2];

	watch_some(w, fd, 20, 0);
	ask_often(&w[0]);
	for (int i = 0; i < 20; i++)
		recheck_add(&loop.recheck, &w[i], true);
	polls = 0;
	while (!counter_read(&loop.recheck.ticks))
		loop_turn(&loop, SOON_MS);
	ck_assert_int_eq(polls, 0);
	ck_assert(recheck_pending(&loop.recheck));
	while (timer_is_set(&loop.recheck.tick))
		loop_turn(&loop, SOON_MS);
	ck_assert_int_eq(polls, 1);
	ck_assert(!recheck_pending(&loop.recheck));
	close_some(fd, 20);
}
END_TEST

START_TEST(without_memory_for_a_tick_it_asks_before_each_sleep)
{
	struct watch w;
	int fd[1][2];

	watch_some(&w, fd, 1, 0);
	timer_fails = true;
	ask_150_times(&w, 0);
	ck_assert(!timer_is_set(&loop.recheck.tick));
	ck_assert_int_eq(polls, 150);
	close_some(fd, 1);
}
END_TEST

/* Edges settle it before it is old enough to be asked about. */
START_TEST(what_edges_keep_young_has_to_be_read_now_and_then)
{
	int taken = 0, refused = 0;
	struct watch w[2];
	int fd[2][2];

	watch_some(w, fd, 2, 0);
	ask_often(&w[0]);
	while (!refused) {
		recheck_add(&loop.recheck, &w[0], true); /* so that it ticks */
		if (recheck_add(&loop.recheck, &w[1], false))
			taken++;
		else
			refused++;
		watch_report(&w[1], EPOLLIN);
		loop_turn(&loop, 0);
		ck_assert(timer_is_set(&loop.recheck.tick));
	}
	ck_assert_int_ge(taken, 4);
	ck_assert_uint_eq(counter_read(&loop.recheck.ticks), 1);

	recheck_confirmed(&loop.recheck, &w[1]);
	recheck_add(&loop.recheck, &w[0], true);
	while (counter_read(&loop.recheck.ticks) < 2)
		loop_turn(&loop, SOON_MS);
	for (int n = 0; n < 4; n++)
		ck_assert(recheck_add(&loop.recheck, &w[1], false));
	ck_assert(!recheck_add(&loop.recheck, &w[1], false));
	for (int n = 0; n < 100; n++) /* what is sure need not be proven */
		ck_assert(recheck_add(&loop.recheck, &w[1], true));
	close_some(fd, 2);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("doubt");
	TCase *tc = support_case(s, "doubt");

	tcase_add_test(tc, what_lies_there_is_told_before_the_loop_sleeps);
	tcase_add_test(tc, where_nothing_lies_it_asks_once_and_sleeps);
	tcase_add_test(tc, an_end_or_an_urgent_byte_is_told_too);
	tcase_add_test(tc, an_edge_settles_the_matter_and_nobody_is_asked);
	tcase_add_test(tc, a_loop_that_never_sleeps_asks_after_a_few_turns);
	tcase_add_test(tc, many_are_asked_about_at_once);
	tcase_add_test(tc, to_doubt_twice_is_to_doubt_once);
	tcase_add_test(tc, what_is_settled_is_not_asked_about);
	tcase_add_test(tc, when_poll_fails_it_is_better_to_read);
	tcase_add_test(tc, what_is_often_in_doubt_is_asked_about_by_the_clock);
	tcase_add_test(tc,
		       what_is_seldom_in_doubt_is_asked_about_before_each_sleep);
	tcase_add_test(tc, what_lies_there_is_told_by_the_second_tick);
	tcase_add_test(tc, a_tick_asks_about_none_that_is_younger_than_the_last);
	tcase_add_test(tc, without_memory_for_a_tick_it_asks_before_each_sleep);
	tcase_add_test(tc, what_edges_keep_young_has_to_be_read_now_and_then);
	return support_main(s);
}
