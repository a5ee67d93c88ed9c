/* SPDX-License-Identifier: MIT */
/*
 * Looking before sleeping: when it is done, for how long, and what is learnt.
 *
 * Linked with -Wl,--wrap= of what look.c asks the kernel, so that a test says
 * how time passes and what happens in it.
 */
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/util.h"
#include "net/busy_poll.h"
#include "support/suite.h"

#define MOST_US 50
#define STEP_NS 1000 /* that each look at the descriptors takes */
#define NEVER	1000000u

int __wrap_epoll_wait(int fd, struct epoll_event *ev, int room, int ms);
int __wrap_getrusage(int who, struct rusage *use);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

static uint64_t clock_ns, event_ns;
static unsigned asked, asleep_us;
static long switches;
static bool crowd; /* others take the cpu at each turn */

int __wrap_epoll_wait(int fd, struct epoll_event *ev, int room, int ms)
{
	(void)fd, (void)ev;
	ck_assert_int_eq(ms, 0);
	ck_assert_int_eq(room, 1);
	switches += crowd && asked;
	asked++;
	clock_ns += STEP_NS;
	return clock_ns >= event_ns;
}

int __wrap_getrusage(int who, struct rusage *use)
{
	ck_assert_int_eq(who, RUSAGE_THREAD);
	memset(use, 0, sizeof(*use));
	use->ru_nivcsw = switches;
	return 0;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	ts->tv_sec = (time_t)(clock_ns / NS_PER_SEC);
	ts->tv_nsec = (long)(clock_ns % NS_PER_SEC);
	return 0;
}

static struct busy_poll look;

static void open_look(bool adapts)
{
	busy_poll_init(&look, MOST_US, adapts);
	clock_ns = NS_PER_SEC;
	asleep_us = 100;
	crowd = false;
}

/* A look that something happens in after @us. Return: what it returned. */
static int look_with(unsigned us)
{
	struct epoll_event ev;

	asked = 0;
	event_ns = clock_ns + 1000ull * us;
	return busy_poll_wait(&look, 0, &ev, 1);
}

/* Waits, each asleep for @asleep_us, until there is to be a look. */
static unsigned waits_until_due(void)
{
	unsigned n = 1;

	/* none of Check's asserts here: each is a write(2) */
	while (!busy_poll_is_due(&look) && n < 100000) {
		clock_ns += 1000ull * asleep_us;
		n++;
	}
	ck_assert_uint_lt(n, 100000);
	return n;
}

/* Has it learn that looking pays. */
static void teach(void)
{
	while (!look.us) {
		waits_until_due();
		ck_assert_int_eq(look_with(5), 1);
	}
}

START_TEST(nothing_asked_for_is_never_due)
{
	struct busy_poll none = { 0 };
	int due = 0;

	for (int i = 0; i < 10000; i++)
		due += busy_poll_is_due(&none);
	ck_assert_int_eq(due, 0);
}
END_TEST

START_TEST(a_fixed_time_is_looked_for_at_each_wait_and_no_longer)
{
	open_look(false);
	for (int i = 0; i < 100; i++) {
		uint64_t start = clock_ns;

		ck_assert(busy_poll_is_due(&look));
		ck_assert_int_eq(look_with(NEVER), 0);
		ck_assert_uint_ge(clock_ns - start, 1000 * MOST_US);
		ck_assert_uint_le(clock_ns - start, 1000 * (MOST_US + 3));
	}
	ck_assert_int_eq(look_with(20), 1);
	ck_assert_uint_eq(asked, 20);
	ck_assert_uint_eq(counter_read(&look.polls), 101);
	ck_assert_uint_eq(counter_read(&look.found), 1);
}
END_TEST

START_TEST(three_tries_that_pay_make_it_the_rule)
{
	open_look(true);
	ck_assert_uint_eq(waits_until_due(), 32);
	for (int i = 0; i < 3; i++) {
		ck_assert(busy_poll_is_due(&look));
		ck_assert_uint_eq(look.us, 0);
		ck_assert_int_eq(look_with(5), 1);
	}
	ck_assert_uint_eq(look.us, MOST_US);
	for (int i = 0; i < 100; i++) {
		ck_assert(busy_poll_is_due(&look));
		ck_assert_int_eq(look_with(5), 1);
	}
}
END_TEST

START_TEST(two_do_not)
{
	open_look(true);
	waits_until_due();
	look_with(5);
	look_with(5);
	look_with(NEVER);
	ck_assert_uint_eq(look.us, 0);
	ck_assert_uint_ge(waits_until_due(), 32);
}
END_TEST

/* At rest there are few waits, and of those it must be few that look. */
START_TEST(tries_in_vain_become_rare)
{
	unsigned waits, before = 0;

	open_look(true);
	for (int i = 0; i < 10; i++) {
		waits = waits_until_due();
		ck_assert_uint_gt(waits, before);
		before = waits < 4096 ? waits : waits - 1;
		look_with(NEVER);
	}
	ck_assert_uint_eq(waits, 4096);
	ck_assert_uint_eq(waits_until_due(), 4096);
}
END_TEST

START_TEST(a_look_in_vain_halves_the_time_and_one_that_pays_doubles_it)
{
	open_look(true);
	teach();
	look_with(NEVER);
	ck_assert_uint_eq(look.us, MOST_US / 2);
	look_with(NEVER);
	ck_assert_uint_eq(look.us, MOST_US / 4);
	look_with(5);
	ck_assert_uint_eq(look.us, MOST_US / 2 - 1);
	for (int i = 0; i < 5; i++)
		look_with(5);
	ck_assert_uint_eq(look.us, MOST_US);
	for (int i = 0; i < 4; i++) {
		ck_assert(look.us);
		look_with(NEVER);
	}
	ck_assert_uint_eq(look.us, 0);
	ck_assert_uint_ge(waits_until_due(), 32);
}
END_TEST

/* Or a machine that is a little slower would never learn: the pace decides. */
START_TEST(what_comes_late_pays_too_if_the_peers_are_quicker)
{
	open_look(true);
	for (int i = 0; i < 3; i++) {
		waits_until_due();
		ck_assert_int_eq(look_with(MOST_US - 5), 1);
	}
	ck_assert_uint_eq(look.us, MOST_US);
	for (int i = 0; i < 1000; i++) {
		ck_assert(busy_poll_is_due(&look));
		ck_assert_int_eq(look_with(MOST_US - 5), 1);
	}
	ck_assert_uint_eq(look.us, MOST_US);
}
END_TEST

START_TEST(what_is_there_at_once_proves_nothing)
{
	open_look(true);
	for (int i = 0; i < 1000; i++) {
		ck_assert_int_eq(look_with(0), 1);
		ck_assert_uint_eq(asked, 1);
	}
	ck_assert_uint_eq(look.us, 0);
	teach();
	look_with(NEVER);
	for (int i = 0; i < 1000; i++)
		look_with(0);
	ck_assert_uint_eq(look.us, MOST_US / 2);
}
END_TEST

START_TEST(who_takes_the_cpu_stops_it_at_once_and_for_longer_each_time)
{
	unsigned waits, before = 0;

	open_look(true);
	for (int i = 0; i < 6; i++) {
		teach();
		crowd = true;
		look_with(5);
		crowd = false;
		ck_assert_uint_eq(look.us, 0);
		waits = waits_until_due();
		ck_assert_uint_gt(waits, before);
		before = waits;
	}
	ck_assert_uint_eq(counter_read(&look.preempted), 6);
}
END_TEST

START_TEST(who_had_the_cpu_between_two_looks_is_no_reason)
{
	open_look(true);
	for (int i = 0; i < 3; i++) {
		switches++;
		waits_until_due();
		look_with(5);
	}
	ck_assert_uint_eq(look.us, MOST_US);
	switches++;
	look_with(5);
	ck_assert_uint_eq(look.us, MOST_US);
	ck_assert_uint_eq(counter_read(&look.preempted), 0);
}
END_TEST

/* Has it look, with an answer after @us, while it wants to.
 * Return: for how many waits, @most at most. */
static unsigned looks_until_asleep(unsigned us, unsigned most)
{
	unsigned n = 0;
	bool found = true;

	while (found && look.us && n < most) {
		found = busy_poll_is_due(&look) && look_with(us) == 1;
		n++;
	}
	ck_assert(found);
	return n;
}

START_TEST(it_goes_on_while_the_peers_are_quicker_for_it_and_compares_anew)
{
	open_look(true);
	asleep_us = 24;
	for (int i = 0; i < 5; i++) {
		ck_assert_uint_eq(waits_until_due(), 32);
		teach();
		ck_assert_uint_eq(looks_until_asleep(14, 10000), 64 * 128);
	}
	ck_assert_uint_eq(counter_read(&look.unprofitable), 0);
}
END_TEST

/* Nor is a pause before a burst counted as slow. */
START_TEST(a_rest_is_no_slow_wait)
{
	open_look(true);
	waits_until_due();
	look_with(NEVER);
	clock_ns += 60 * NS_PER_SEC;
	asleep_us = 18;
	waits_until_due();
	teach();
	ck_assert_uint_eq(looks_until_asleep(14, 10000), 64);
}
END_TEST

START_TEST(it_stops_when_nobody_is_quicker_for_it_for_longer_each_time)
{
	unsigned waits, before = 0;

	open_look(true);
	asleep_us = 18;
	for (int i = 0; i < 8; i++) {
		waits = waits_until_due();
		ck_assert_uint_gt(waits, before);
		before = waits;
		teach();
		ck_assert_uint_eq(looks_until_asleep(14, 10000), 64);
	}
	ck_assert_uint_eq(counter_read(&look.unprofitable), 8);
}
END_TEST

/* Or a thread that others crowd out now and then would nearly always sleep. */
START_TEST(a_stretch_that_pays_makes_good_what_did_not)
{
	open_look(true);
	for (int i = 0; i < 9; i++) {
		waits_until_due();
		look_with(NEVER);
	}
	ck_assert_uint_eq(waits_until_due(), 4096);
	teach();
	ck_assert_uint_eq(looks_until_asleep(5, 64 * 20), 64 * 20);
	crowd = true;
	look_with(5);
	crowd = false;
	ck_assert_uint_eq(look.us, 0);
	ck_assert_uint_eq(waits_until_due(), 64);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("look");
	TCase *tc = support_case(s, "look");

	tcase_add_test(tc, nothing_asked_for_is_never_due);
	tcase_add_test(tc, a_fixed_time_is_looked_for_at_each_wait_and_no_longer);
	tcase_add_test(tc, three_tries_that_pay_make_it_the_rule);
	tcase_add_test(tc, two_do_not);
	tcase_add_test(tc, tries_in_vain_become_rare);
	tcase_add_test(
		tc, a_look_in_vain_halves_the_time_and_one_that_pays_doubles_it);
	tcase_add_test(tc, what_comes_late_pays_too_if_the_peers_are_quicker);
	tcase_add_test(tc, what_is_there_at_once_proves_nothing);
	tcase_add_test(
		tc, who_takes_the_cpu_stops_it_at_once_and_for_longer_each_time);
	tcase_add_test(tc, who_had_the_cpu_between_two_looks_is_no_reason);
	tcase_add_test(
		tc,
		it_goes_on_while_the_peers_are_quicker_for_it_and_compares_anew);
	tcase_add_test(tc, a_rest_is_no_slow_wait);
	tcase_add_test(
		tc, it_stops_when_nobody_is_quicker_for_it_for_longer_each_time);
	tcase_add_test(tc, a_stretch_that_pays_makes_good_what_did_not);
	return support_main(s);
}
