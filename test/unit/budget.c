/* SPDX-License-Identifier: MIT */
/*
 * Many relays on one loop: whose turn it is, and what it costs to wait.
 *
 * Time is told by turns and bytes, not by a clock: this machine has others to
 * serve. FAULTS 9. _i is the mode.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "relay/conduit.h"
#include "unit/rig.h"

#define MODES (rig_modes() - 1)
#define BULKS 8

/* What a relay moves in one go, at most: a share, and the fill that goes over
 * it. */
#define SHARE 16384
#define GO    (SHARE + RIG_PIPE_SIZE)

/* Enough for many shares; both kernels together can hold it. */
#define LOAD 300000

/* All but RELAY_AUTO. */
static enum relay_mode mode_of(int i)
{
	return i > RELAY_COPY ? RELAY_URING : (enum relay_mode)i;
}

static uint64_t read_of(const struct wire *w)
{
	return w->relay.lane[0].read + w->relay.lane[1].read;
}

static uint64_t read_by_all(const struct wire *w)
{
	uint64_t sum = 0;

	for (int i = 0; i < BULKS; i++)
		sum += read_of(&w[i]);
	return sum;
}

/* Eight peers have said more than the relays can read in one go; all is here,
 * and no loop has turned yet. */
static void load_up(struct rig *g, struct wire *bulk, int mode)
{
	rig_open_sized(g, mode_of(mode), 4096, RIG_PIPE_SIZE, 32);
	g->env.budget = SHARE;
	for (unsigned i = 0; i < BULKS; i++) {
		wire_plug(g, &bulk[i]);
		peer_small_buffers(bulk[i].relay.side[0].watch.fd, 2 * LOAD);
		peer_small_buffers(bulk[i].relay.side[1].watch.fd, 2 * LOAD);
		say(bulk[i].peer[0], i, 0, LOAD);
	}
	for (unsigned i = 0; i < BULKS; i++)
		wire_start(&bulk[i]);
}

/* A turn, after which the readers have read all that has come. */
static void turn(struct rig *g, const struct wire *bulk)
{
	static char buf[65536];

	rig_turn(g);
	for (int i = 0; i < BULKS; i++)
		while (recv(bulk[i].peer[1], buf, sizeof(buf), MSG_DONTWAIT) > 0)
			;
}

static void unload(struct rig *g, struct wire *w, int n)
{
	for (int i = 0; i < n; i++)
		wire_hang_up(&w[i]);
	for (int i = 0; i < n; i++)
		rig_finish(g, &w[i]);
	rig_close(g);
}

START_TEST(a_ping_waits_for_one_share_of_eight_endless_transfers)
{
	static struct wire w[BULKS + 1];
	struct wire *ping = &w[BULKS];
	struct rig g;
	unsigned n;

	load_up(&g, w, _i);
	wire_lay(&g, ping);
	turn(&g, w); /* all of them start */
	for (n = 0; n < 20; n++) {
		uint64_t before = read_by_all(w), moved;
		unsigned from = n % 2;

		say(ping->peer[from], 100, n, 1);
		await_acked(ping->peer[from]);
		turn(&g, w);
		/* it has come in the very turn that found it ... */
		ck_assert_uint_eq(ping->relay.lane[from].delivered, n / 2 + 1);
		hear(ping->peer[!from], 100, n, 1);
		/* ... in which at most one of the others had a go */
		moved = read_by_all(w) - before;
		ck_assert_uint_gt(moved, 0); /* they are still busy */
		ck_assert_uint_le(moved, _i == RELAY_COPY ? SHARE + 4096 : GO);
	}
	unload(&g, w, BULKS + 1);
}
END_TEST

START_TEST(transfers_that_compete_get_the_same)
{
	static struct wire w[BULKS];
	struct rig g;

	load_up(&g, w, _i);
	for (int n = 0; n < 1 + 3 * BULKS; n++)
		turn(&g, w);
	for (int i = 0; i < BULKS; i++) {
		uint64_t done = read_of(&w[i]);

		ck_assert_uint_ge(done, 4 * SHARE);
		ck_assert_uint_le(done, 5 * GO);
		for (int j = 0; j < i; j++) {
			ck_assert_uint_le(done, read_of(&w[j]) + GO);
			ck_assert_uint_ge(done + GO, read_of(&w[j]));
		}
	}
	unload(&g, w, BULKS);
}
END_TEST

/* An event for a relay that waits its turn must not bring the turn forward. */
START_TEST(one_that_is_sent_more_and_more_gets_no_more)
{
	static struct wire w[BULKS];
	struct rig g;

	load_up(&g, w, _i);
	turn(&g, w);
	for (unsigned n = 0; n < 2 * BULKS; n++) {
		say(w[0].peer[0], 0, LOAD + n * 100, 100);
		turn(&g, w);
	}
	for (int i = 1; i < BULKS; i++)
		ck_assert_uint_le(read_of(&w[0]), read_of(&w[i]) + GO);
	unload(&g, w, BULKS);
}
END_TEST

/* Turns the loop for @ms, waiting as long as it likes. Return: how often it
 * did not wait to the end. */
static uint64_t turns_in(struct rig *g, int ms)
{
	uint64_t before = g->loop.turns;
	int64_t end = now_ms() + ms, left;

	while ((left = end - now_ms()) > 0)
		loop_turn(&g->loop, (int)left);
	return g->loop.turns - before - 1;
}

START_TEST(idle_connections_wake_nobody)
{
	static struct wire w[BULKS];
	struct rig g;

	rig_open(&g, mode_of(_i));
	for (int i = 0; i < BULKS; i++)
		wire_lay(&g, &w[i]);
	rig_settle(&g);
	ck_assert_uint_eq(turns_in(&g, 200), 0);
	unload(&g, w, BULKS);
}
END_TEST

START_TEST(stalled_readers_cost_no_cpu)
{
	static struct wire w[BULKS];
	struct rig g;

	rig_open(&g, mode_of(_i));
	for (unsigned i = 0; i < BULKS; i++) {
		wire_lay(&g, &w[i]);
		rig_stall(&g, &w[i], 0, i);
	}
	rig_settle(&g);
	/* window probes move a little now and then; a spin is 10000 */
	ck_assert_uint_le(turns_in(&g, 300), 100);
	unload(&g, w, BULKS);
}
END_TEST

/* The same with a RST that cannot be passed on yet: it is asked about, but
 * ever more seldom. */
START_TEST(a_reset_that_waits_for_a_stalled_reader_costs_little)
{
	struct wire w;
	struct rig g;

	rig_open(&g, mode_of(_i));
	wire_lay(&g, &w);
	rig_stall(&g, &w, 0, 1);
	peer_reset(w.peer[0]);
	w.peer[0] = -1;
	rig_settle(&g);
	ck_assert_uint_le(turns_in(&g, 500), 30);
	ck_assert_int_eq(atomic_load(&w.done), 0);
	unload(&g, &w, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("share");
	TCase *tc = support_case(s, "share");

	tcase_add_loop_test(tc,
			    a_ping_waits_for_one_share_of_eight_endless_transfers,
			    0, MODES);
	tcase_add_loop_test(tc, transfers_that_compete_get_the_same, 0, MODES);
	tcase_add_loop_test(tc, one_that_is_sent_more_and_more_gets_no_more, 0,
			    MODES);
	tcase_add_loop_test(tc, idle_connections_wake_nobody, 0, MODES);
	tcase_add_loop_test(tc, stalled_readers_cost_no_cpu, 0, MODES);
	tcase_add_loop_test(tc,
			    a_reset_that_waits_for_a_stalled_reader_costs_little,
			    0, MODES);
	return support_main(s);
}
