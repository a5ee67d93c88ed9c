/* SPDX-License-Identifier: MIT */
/*
 * Deadlines of the event loop: one timerfd beside the sockets.
 *
 * Linked with -Wl,--wrap=timerfd_settime, to count how often that is asked.
 */
#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/util.h"
#include "net/loop.h"
#include "support/peer.h"
#include "support/suite.h"

int __real_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old);

static int settings;

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old)
{
	settings++;
	return __real_timerfd_settime(fd, flags, when, old);
}

static struct loop loop;
static struct timer timer[8];
static int fired[8];	     /* how often each was called */
static uint64_t fired_at[8]; /* and when */
static uint64_t again_in_ms; /* fires_again() sets itself for so much later */

static void fires(struct timer *t)
{
	size_t i = (size_t)(t - timer);

	fired_at[i] = now_ns();
	ck_assert_uint_ge(fired_at[i], t->due_ns);
	fired[i]++;
}

static void set(int i, int ms, void (*fn)(struct timer *))
{
	ck_assert_int_eq(loop_timer(&loop, &timer[i],
				    now_ns() + (uint64_t)ms * NS_PER_MS, fn),
			 0);
}

static void fires_again(struct timer *t)
{
	fires(t);
	set((int)(t - timer), (int)again_in_ms, fires);
}

static void loop_open(void)
{
	ck_assert_int_eq(loop_init(&loop), 0);
	settings = 0;
}

/* Turns until timer @i has fired. Nothing but the timerfd ends a wait early
 * here, so a deadline that is not armed shows. */
static void turn_until_fired(int i)
{
	while (!fired[i]) {
		int64_t t = now_ms();

		ck_assert_int_eq(loop_turn(&loop, 5000), 0);
		ck_assert_msg(now_ms() - t < 5000, "nothing ended the wait");
	}
}

START_TEST(deadlines_end_the_wait_in_order_and_fire_once)
{
	loop_open();
	set(0, 60, fires);
	set(1, 20, fires);
	set(2, 40, fires);
	for (int i = 0; i < 3; i++)
		turn_until_fired((i + 1) % 3);
	ck_assert_uint_lt(fired_at[1], fired_at[2]);
	ck_assert_uint_lt(fired_at[2], fired_at[0]);
	loop_turn(&loop, 20);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(fired[i], 1);
	loop_fini(&loop);
}
END_TEST

START_TEST(a_deadline_that_has_passed_fires_at_once)
{
	loop_open();
	ck_assert_int_eq(loop_timer(&loop, &timer[0], 1, fires), 0);
	turn_until_fired(0);
	loop_fini(&loop);
}
END_TEST

START_TEST(a_deadline_shows_on_the_descriptor_of_the_loop)
{
	loop_open();
	ck_assert_int_eq(peer_wait(loop.epfd, POLLIN, 0), -ETIMEDOUT);
	set(0, 30, fires);
	ck_assert_int_eq(peer_wait(loop.epfd, POLLIN, 5000), POLLIN);
	loop_turn(&loop, 0);
	ck_assert_int_eq(fired[0], 1);
	ck_assert_int_eq(peer_wait(loop.epfd, POLLIN, 0), -ETIMEDOUT);
	loop_fini(&loop);
}
END_TEST

START_TEST(a_deadline_taken_back_does_not_fire)
{
	loop_open();
	set(0, 10, fires);
	set(1, 30, fires);
	loop_untimer(&loop, &timer[0]);
	turn_until_fired(1);
	ck_assert_int_eq(fired[0], 0);
	loop_fini(&loop);
}
END_TEST

/* A system call for each deadline of each connection would be dear. */
START_TEST(the_timerfd_is_set_for_an_earlier_deadline_alone)
{
	loop_open();
	set(0, 2000, fires);
	ck_assert_int_eq(settings, 1);
	for (int ms = 3000; ms < 4000; ms++)
		set(1 + ms % 7, ms, fires);
	ck_assert_int_eq(settings, 1);
	set(1, 1000, fires);
	ck_assert_int_eq(settings, 2);
	for (int i = 0; i < 8; i++)
		loop_untimer(&loop, &timer[i]);
	ck_assert_int_eq(settings, 2);
	loop_fini(&loop);
}
END_TEST

START_TEST(a_wake_up_for_a_deadline_taken_back_arms_the_next)
{
	loop_open();
	set(0, 10, fires);
	set(1, 60, fires);
	loop_untimer(&loop, &timer[0]);
	loop_turn(&loop, -1); /* for nothing */
	ck_assert_int_eq(fired[1], 0);
	ck_assert_int_eq(settings, 2);
	turn_until_fired(1);
	ck_assert_int_eq(settings, 2);
	loop_fini(&loop);
}
END_TEST

/* What fires first must not hide what is due before its next time. */
START_TEST(a_deadline_that_sets_itself_again_does_not_delay_another)
{
	loop_open();
	again_in_ms = 60000;
	set(0, 10, fires_again);
	set(1, 60, fires);
	turn_until_fired(1);
	ck_assert_int_eq(fired[0], 1);
	loop_fini(&loop);
}
END_TEST

START_TEST(a_deadline_that_sets_itself_again_fires_again)
{
	loop_open();
	again_in_ms = 20;
	set(0, 10, fires_again);
	turn_until_fired(0);
	fired[0] = 0;
	turn_until_fired(0);
	loop_fini(&loop);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("deadline");
	TCase *tc = support_case(s, "deadline");

	tcase_add_test(tc, deadlines_end_the_wait_in_order_and_fire_once);
	tcase_add_test(tc, a_deadline_that_has_passed_fires_at_once);
	tcase_add_test(tc, a_deadline_shows_on_the_descriptor_of_the_loop);
	tcase_add_test(tc, a_deadline_taken_back_does_not_fire);
	tcase_add_test(tc, the_timerfd_is_set_for_an_earlier_deadline_alone);
	tcase_add_test(tc, a_wake_up_for_a_deadline_taken_back_arms_the_next);
	tcase_add_test(tc,
		       a_deadline_that_sets_itself_again_does_not_delay_another);
	tcase_add_test(tc, a_deadline_that_sets_itself_again_fires_again);
	return support_main(s);
}
