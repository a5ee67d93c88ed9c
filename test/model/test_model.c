/* SPDX-License-Identifier: MIT */
/*
 * The pump against a simulated kernel.
 *
 * Schedules of two kinds: all short ones over a few acts, and long ones thrown
 * by dice. What must hold in each of them is in invariants.c and sim_out.c.
 *
 *	MODEL_ROUNDS=n	so many random schedules a test
 *	MODEL_SEED=n	begin with this one; a failure tells which it was
 *	MODEL_DEPTH=n	n more acts in the short ones, or fewer if negative
 *	CK_RUN_CASE=short, scenes or long
 */
#include <stdlib.h>

#include "model/schedule.h"
#include "support/suite.h"

#define ROUNDS 3000

static long env(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 0) : otherwise;
}

/* What lanes may be made of. */
enum kind { SPLICE, COPY, OWN, AUTO, FEW, KINDS };

static void set_kind(struct world_rules *r, enum kind kind)
{
	r->mode = kind == COPY	 ? RELAY_COPY
		  : kind == AUTO ? RELAY_AUTO
				 : RELAY_SPLICE;
	r->own_pipes = kind == OWN;
	r->pipe_limit = 8;
}

/* Small, so that a few bytes fill what there is. */
static const struct world_rules small = {
	.runs = 1,
	.scale = 1,
	.pipe_size = 65536,
	.buf_size = 8,
	.sndbuf = 8,
	.rcvbuf = 40,
	.sim = { .slots = 2, .share = 12 },
};

static void all_ways(int kind, struct ways w)
{
	unsigned long n;

	w.rules = small;
	w.rules.late = w.acts & BIT(ACT_START);
	if ((long)w.depth + env("MODEL_DEPTH", 0) < 1)
		return;
	w.depth += (unsigned)env("MODEL_DEPTH", 0);
	set_kind(&w.rules, (enum kind)kind);
	n = schedule_all(&w);
	support_note("%lu schedules", n);
}

START_TEST(every_short_way_for_two_peers_to_end)
{
	all_ways(_i, (struct ways){ .acts = ENDS, .depth = 7 });
}
END_TEST

START_TEST(every_short_way_to_end_beside_a_peer_that_does_not_read)
{
	all_ways(_i, (struct ways){ .acts = STALLS | BIT(ACT_TICK),
				    .depth = 6,
				    .stall = true });
}
END_TEST

START_TEST(every_short_way_to_end_before_the_relay_has_started)
{
	all_ways(_i, (struct ways){ .acts = ENDS | BIT(ACT_START), .depth = 6 });
}
END_TEST

START_TEST(every_short_way_for_two_peers_to_open_and_close_windows)
{
	all_ways(_i, (struct ways){ .acts = WINDOWS, .depth = 7 });
}
END_TEST

START_TEST(every_short_way_to_send_urgent_bytes)
{
	all_ways(_i, (struct ways){ .acts = URGENTS, .depth = 6 });
}
END_TEST

START_TEST(every_short_way_to_end_in_the_middle_of_a_turn)
{
	all_ways(_i, (struct ways){ .acts = ENDS, .depth = 6, .mids = 2 });
}
END_TEST

START_TEST(every_short_way_to_stall_in_the_middle_of_a_turn)
{
	all_ways(_i, (struct ways){ .acts = STALLS, .depth = 5, .mids = 2 });
}
END_TEST

START_TEST(every_short_way_to_be_urgent_in_the_middle_of_a_turn)
{
	all_ways(_i, (struct ways){ .acts = URGENTS, .depth = 5, .mids = 2 });
}
END_TEST

START_TEST(every_short_way_to_end_by_the_word_of_the_owner)
{
	all_ways(_i, (struct ways){ .acts = BIT(ACT_SEND) | BIT(ACT_URGENT) |
					    BIT(ACT_READ_ALL) | BIT(ACT_FAIL),
				    .depth = 5,
				    .mids = 1 });
}
END_TEST

START_TEST(one_call_fails_at_any_place)
{
	const struct scene *scene = &scenes[_i / 4];

	support_note("%s: %lu times", scene->name,
		     scene_play(scene, (unsigned)_i % 4));
}
END_TEST

static enum kind random_kind;
static bool random_faults;

static void enlarge(struct world_rules *r, unsigned scale)
{
	r->scale = scale;
	r->buf_size *= scale;
	r->sndbuf *= scale;
	r->rcvbuf *= scale;
	r->sim.share *= scale;
}

static void random_rules(struct world_rules *r)
{
	set_kind(r, random_kind);
	if (random_kind == FEW)
		r->pipe_limit = choose(3);
	r->runs = random_kind == FEW ? RUNS : 1 + choose(RUNS);
	r->late = !choose(4);
	r->idle_ms = choose(4) ? 0 : 400;
	r->half_ms = choose(4) ? 0 : 100 + choose(500);
	r->pipe_size = choose(2) ? 65536 : 262144;
	r->buf_size = 1 + choose(choose(2) ? 20 : 200);
	r->sndbuf = 1 + choose(choose(2) ? 30 : 300);
	r->rcvbuf = 1 + choose(choose(2) ? 60 : 600);
	r->sim.slots = 1 + choose(SIM_SLOTS);
	r->sim.share = 1 + choose(choose(2) ? 30 : 300);
	r->sim.eager = choose(2);
	r->sim.chop = choose(2);
	if (!choose(random_kind == AUTO ? 4 : 20))
		enlarge(r, 100 + choose(900));
	if (!random_faults)
		return;
	r->sim.faults = 2 + choose(choose(2) ? 12 : 100);
	r->sim.refuse = !choose(4);
	r->sim.broken = !choose(8);
}

static void random_ways(enum kind kind, bool faults)
{
	unsigned long seed = (unsigned long)env("MODEL_SEED", 1);
	long n = env("MODEL_ROUNDS", ROUNDS);
	const struct coverage *c = &world.seen;

	world.seen = (struct coverage){ 0 };
	random_kind = kind;
	random_faults = faults;
	while (n-- > 0)
		schedule_random(seed++, random_rules);
	support_note("%lu schedules of %lu turns: %lu clean, %lu reset, "
		     "%lu lingered, %lu stopped, %lu silent",
		     c->worlds, c->turns, c->clean, c->reset, c->lingered,
		     c->stopped, c->idle);
	support_note("bytes: %lu by pipe, %lu copied, %lu spilled, "
		     "%lu discarded, %lu urgent; %lu shortages",
		     c->by_pipe, c->copied, c->spilled, c->discarded, c->urgent,
		     c->faults);
	if (c->worlds < 500)
		return;
	ck_assert(c->clean && c->reset && c->lingered && c->stopped && c->idle);
	ck_assert(c->copied && c->discarded && c->urgent);
	ck_assert(!c->by_pipe == (kind == COPY));
	ck_assert(!c->faults == !faults);
	ck_assert(c->spilled || kind != FEW);
}

START_TEST(long_schedules_keep_every_promise)
{
	random_ways((enum kind)_i, false);
}
END_TEST

START_TEST(long_schedules_in_which_calls_fail_keep_every_promise)
{
	random_ways((enum kind)_i, true);
}
END_TEST

static TCase *add_case(Suite *s, const char *name)
{
	TCase *tc = support_case(s, name);

	tcase_set_timeout(tc, 120);
	return tc;
}

static void add_short(TCase *tc)
{
	tcase_add_loop_test(tc, every_short_way_for_two_peers_to_end, 0, FEW);
	tcase_add_loop_test(
		tc, every_short_way_to_end_beside_a_peer_that_does_not_read, 0,
		FEW);
	tcase_add_loop_test(
		tc, every_short_way_to_end_before_the_relay_has_started, 0, FEW);
	tcase_add_loop_test(
		tc, every_short_way_for_two_peers_to_open_and_close_windows, 0,
		FEW);
	tcase_add_loop_test(tc, every_short_way_to_send_urgent_bytes, 0, FEW);
	tcase_add_loop_test(tc, every_short_way_to_end_by_the_word_of_the_owner,
			    0, FEW);
	tcase_add_loop_test(tc, every_short_way_to_end_in_the_middle_of_a_turn,
			    0, FEW);
	tcase_add_loop_test(tc, every_short_way_to_stall_in_the_middle_of_a_turn,
			    0, FEW);
	tcase_add_loop_test(tc,
			    every_short_way_to_be_urgent_in_the_middle_of_a_turn,
			    0, FEW);
}

int main(void)
{
	Suite *s = suite_create("model");
	TCase *tc;

	add_short(add_case(s, "short"));
	tc = add_case(s, "scenes");
	tcase_add_loop_test(tc, one_call_fails_at_any_place, 0,
			    4 * (int)n_scenes);
	tc = add_case(s, "long");
	tcase_add_loop_test(tc, long_schedules_keep_every_promise, 0, KINDS);
	tcase_add_loop_test(tc,
			    long_schedules_in_which_calls_fail_keep_every_promise,
			    0, KINDS);
	return support_main(s);
}
