/* SPDX-License-Identifier: MIT */
/*
 * The heap of deadlines against a model: an array that is searched.
 */
#include <stdlib.h>

#include "base/util.h"
#include "net/timer.h"
#include "support/suite.h"

#define N 100

static struct timers heap;
static struct timer timer[N];
static uint64_t model[N]; /* when each is due, 0 if it is not set */

static unsigned fired;	    /* how many of model[] were called */
static uint64_t fired_last; /* when the last of them was due */

/* Each is called once, in order, and only after it has left the heap. */
static void fires(struct timer *t)
{
	size_t i = (size_t)(t - timer);

	ck_assert(!timer_is_set(t));
	ck_assert_uint_ne(model[i], 0);
	ck_assert_uint_eq(model[i], t->due_ns);
	ck_assert_uint_ge(t->due_ns, fired_last);
	fired_last = t->due_ns;
	model[i] = 0;
	fired++;
}

static void fires_never(struct timer *t)
{
	ck_abort_msg("due at %lu was called", (unsigned long)t->due_ns);
}

static uint64_t model_next(void)
{
	uint64_t next = UINT64_MAX;

	for (int i = 0; i < N; i++)
		if (model[i] && model[i] < next)
			next = model[i];
	return next;
}

static unsigned model_due(uint64_t now)
{
	unsigned n = 0;

	for (int i = 0; i < N; i++)
		n += model[i] && model[i] <= now;
	return n;
}

static void expect_model(void)
{
	unsigned n = 0, wrong = 0;

	ck_assert_uint_eq(timers_next(&heap), model_next());
	for (int i = 0; i < N; i++) {
		wrong += timer_is_set(&timer[i]) != (model[i] != 0);
		n += model[i] != 0;
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(heap.n, n);
}

static void run_at(uint64_t now)
{
	unsigned due = model_due(now);

	fired = 0;
	fired_last = 0;
	timers_run(&heap, now);
	ck_assert_uint_eq(fired, due);
}

static void one_step(void)
{
	int i = (int)(random() % N);
	uint64_t now = 1 + (uint64_t)random() % 1000;

	switch (random() % 8) {
	case 0:
		run_at(now / 4);
		break;
	case 1:
	case 2:
		timer_clear(&heap, &timer[i]);
		model[i] = 0;
		break;
	default: /* sets what is not set, and moves what is */
		ck_assert_int_eq(timer_set(&heap, &timer[i], now, fires), 0);
		model[i] = now;
	}
}

/* _i is the seed. */
START_TEST(timers_set_cleared_and_moved_at_random_fire_in_order)
{
	srandom((unsigned)_i);
	for (int step = 0; step < 10000; step++) {
		one_step();
		expect_model();
	}
	run_at(UINT64_MAX - 1);
	expect_model();
	ck_assert_uint_eq(heap.n, 0);
	timers_fini(&heap);
}
END_TEST

START_TEST(a_timer_fires_when_due_and_not_before)
{
	model[0] = 1000;
	ck_assert_int_eq(timer_set(&heap, &timer[0], 1000, fires), 0);
	run_at(999);
	ck_assert_uint_eq(fired, 0);
	run_at(1000);
	ck_assert_uint_eq(fired, 1);
	run_at(1001);
	ck_assert_uint_eq(fired, 0);
	timers_fini(&heap);
}
END_TEST

static int rounds;

static void sets_itself_again(struct timer *t)
{
	rounds++;
	ck_assert_int_eq(timer_set(&heap, t, 2000 + (uint64_t)rounds,
				   sets_itself_again),
			 0);
}

START_TEST(a_timer_that_sets_itself_again_waits_its_turn)
{
	timer_set(&heap, &timer[0], 1000, sets_itself_again);
	timers_run(&heap, 1500);
	ck_assert_int_eq(rounds, 1);
	timers_run(&heap, 2000);
	ck_assert_int_eq(rounds, 1);
	timers_run(&heap, 2001);
	ck_assert_int_eq(rounds, 2);
	timers_fini(&heap);
}
END_TEST

static void clears_the_next(struct timer *t)
{
	timer_clear(&heap, t + 1);
}

START_TEST(one_that_was_due_can_be_taken_back_by_one_before_it)
{
	timer_set(&heap, &timer[1], 101, fires_never);
	timer_set(&heap, &timer[0], 100, clears_the_next);
	timers_run(&heap, 1000);
	ck_assert_uint_eq(heap.n, 0);
	timers_fini(&heap);
}
END_TEST

START_TEST(clearing_what_is_not_set_does_no_harm)
{
	timer_set(&heap, &timer[0], 100, fires);
	model[0] = 100;
	timer_clear(&heap, &timer[1]);
	timer_clear(&heap, &timer[1]);
	expect_model();
	timer_clear(&heap, &timer[0]);
	timer_clear(&heap, &timer[0]);
	ck_assert_uint_eq(timers_next(&heap), UINT64_MAX);
	timers_fini(&heap);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("timer");
	TCase *tc = support_case(s, "timer");

	tcase_add_loop_test(
		tc, timers_set_cleared_and_moved_at_random_fire_in_order, 1, 5);
	tcase_add_test(tc, a_timer_fires_when_due_and_not_before);
	tcase_add_test(tc, a_timer_that_sets_itself_again_waits_its_turn);
	tcase_add_test(tc, one_that_was_due_can_be_taken_back_by_one_before_it);
	tcase_add_test(tc, clearing_what_is_not_set_does_no_harm);
	return support_main(s);
}
