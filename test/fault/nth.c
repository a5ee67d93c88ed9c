/* SPDX-License-Identifier: MIT */
/*
 * Every fallible call fails once: run the scenario over and over, and on run N
 * the Nth call fails, with each of the errnos that fit it.
 *
 * What is no end of the connection must not show: FAULTS 12. What is an end
 * may cut the stream short, but never so that it looks whole: FAULTS 2.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fault/play.h"
#include "fault/shim.h"
#include "support/suite.h"

#define KIB 1024

static const struct play plays[] = {
	{ .name = "a few bytes both ways",
	  .part = { { .says = 5000, .gulp = 4000, .fin = true },
		    { .says = 10, .gulp = 4000, .fin = true } } },
	{ .name = "many bytes both ways, slow readers",
	  .part = { { .says = 300 * KIB, .gulp = 20 * KIB, .fin = true },
		    { .says = 200 * KIB, .gulp = 20 * KIB, .fin = true } },
	  .room = 32 * KIB },
	{ .name = "an answer after the other's FIN",
	  .part = { { .says = 100, .gulp = 64 * KIB, .fin = true },
		    { .says = 200 * KIB, .gulp = 4000, .answers = true, .fin = true } },
	  .room = 32 * KIB },
	{ .name = "an urgent byte",
	  .part = { { .says = 30 * KIB, .shout = 20000, .gulp = 4000, .fin = true },
		    { .says = 500, .gulp = 10 * KIB, .fin = true } } },
	{ .name = "a reset after bytes that a slow reader has yet to read",
	  .part = { { .says = 150 * KIB, .gulp = 4000, .resets = true },
		    { .says = 1000, .gulp = 8 * KIB } },
	  .room = 32 * KIB },
	{ .name = "an early answer and a reset while the other uploads",
	  .part = { { .says = 400 * KIB, .gulp = 16 * KIB },
		    { .says = 100 * KIB, .gulp = 500, .resets = true } },
	  .room = 32 * KIB },
	{ .name = "splice(2) refuses to drain, slow readers",
	  .part = { { .says = 200 * KIB, .gulp = 20 * KIB, .fin = true },
		    { .says = 100 * KIB, .gulp = 20 * KIB, .fin = true } },
	  .room = 32 * KIB },
};

#define MODES 3

static const char *const modes[MODES] = { "splice", "copy", "auto" };

#define PLAYS	   (int)(sizeof(plays) / sizeof(plays[0]))
#define REFUSED	   (PLAYS - 1) /* the play with the refusal */
#define MOST_CALLS 3000

/* Whether TCP says so when a connection has ended, or our call on it failed
 * for good: then nobody can be expected to go on. */
static bool is_end(void)
{
	switch (fault.hit_errno) {
	case ECONNRESET:
	case EPIPE:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case FAULT_RESET:
		return true;
	case EIO:
		return fault.hit == FAULT_recv || fault.hit == FAULT_send ||
		       fault.hit == FAULT_shutdown;
	default:
		return fault.hit == FAULT_shutdown;
	}
}

struct counts {
	unsigned calls, whole, cut, denied;
};

/* One run. Return: whether the call that was to fail was made. */
static bool run_once(const struct play *play, int mode, unsigned at,
		     unsigned pick, struct counts *n)
{
	const char *why = NULL, *lie = NULL;
	struct ending e;
	bool whole;

	fault_set(at, pick);
	play_run(play, mode, &e);
	whole = play_is_whole(play, &e, &why);
	if (!e.wrong && !whole && (!fault.hit_errno || !is_end()))
		e.wrong = why;
	if (!e.wrong && !whole && !play_is_honest(play, &e, &lie))
		e.wrong = lie;
	if (e.wrong)
		ck_abort_msg("%s, %s: %s; peer 0 heard %zu bytes, end %d, peer "
			     "1 %zu, end %d",
			     play->name, fault_what(), e.wrong, e.got[0],
			     e.end[0], e.got[1], e.end[1]);
	if (fault.hit_errno) {
		n->calls += pick == 0;
		n->whole += whole && !e.denied;
		n->denied += whole && e.denied;
		n->cut += !whole;
	}
	return fault.calls >= at;
}

static void refuse_to_drain(int i)
{
	fault.refusal = (struct refusal){ 0 };
	if (i == REFUSED)
		fault.refusal = (struct refusal){ .call = FAULT_splice_out,
						  .err = EINVAL,
						  .from = 1,
						  .times = -1U / 2 };
}

/* _i % MODES is the mode, and _i / MODES the play. */
START_TEST(one_call_that_fails_is_survived_or_told_and_never_hidden)
{
	const struct play *play = &plays[_i / MODES];
	struct counts n = { 0 };
	unsigned at;

	refuse_to_drain(_i / MODES);
	ck_assert(!run_once(play, _i % MODES, MOST_CALLS * 100, 0, &n));
	for (at = 1; at < MOST_CALLS; at++) {
		unsigned pick = 0;
		bool made;

		do
			made = run_once(play, _i % MODES, at, pick++, &n);
		while (made && fault.hit_errno);
		if (!made)
			break;
	}
	ck_assert_uint_lt(at, MOST_CALLS);
	ck_assert_uint_gt(n.calls, 0);
	support_note("%s, %s: %u calls failed in %u ways: %u survived, %u "
		     "reported, %u refused to begin",
		     play->name, modes[_i % MODES], n.calls,
		     n.whole + n.cut + n.denied, n.whole, n.cut, n.denied);
}
END_TEST

/* A call that is not wrapped, for it goes by another name, would never fail,
 * and nobody would notice. */
START_TEST(every_call_that_can_fail_is_met)
{
	struct ending e;

	for (int i = 0; i < MODES * PLAYS; i++) {
		refuse_to_drain(i / MODES);
		fault_set(0, 0);
		play_run(&plays[i / MODES], i % MODES, &e);
	}
	for (int i = 0; i < FAULT_CALLS_N; i++)
		ck_assert_msg(fault.reached[i], "%s is never called",
			      fault_name(i));
}
END_TEST

/* $FAULT_MODE has but one mode played, so that they can be run side by side. */
static void add_plays(TCase *tc)
{
	const char *only = getenv("FAULT_MODE");

	for (int i = 0; i < MODES * PLAYS; i++)
		if (!only || !strcmp(only, modes[i % MODES]))
			tcase_add_loop_test(
				tc,
				one_call_that_fails_is_survived_or_told_and_never_hidden,
				i, i + 1);
}

int main(void)
{
	Suite *s = suite_create("nth");
	TCase *tc = support_case(s, "nth");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, every_call_that_can_fail_is_met);
	add_plays(tc);
	return support_main(s);
}
