/* SPDX-License-Identifier: MIT */
/*
 * schedule.c - who acts when: all short ways, and long ones by chance
 *
 * DOC: Theory of operation
 *
 * Whatever could go one way or another asks choose(). To try every way, a
 * schedule is run again and again: the first run answers 0 each time and notes
 * how many answers there were; each further run repeats the last one up to the
 * last answer that can still be raised, raises it, and goes on with 0. Nothing
 * need be copied or undone, since a world is built anew each time.
 *
 * For random schedules choose() throws dice. A seed is one schedule.
 */
#include "model/schedule.h"

#include <errno.h>

#include "base/util.h"
#include "support/suite.h"

#define MANY 4096

/**
 * struct chooser - the answers of choose()
 * @random:	they are thrown, out of @seed
 * @answer, @of: what was answered, and out of how many
 * @at:		how many answers were given in this run
 * @known:	how many of them are to be repeated
 */
static struct {
	bool random;
	uint64_t seed, state;
	unsigned short answer[MANY], of[MANY];
	unsigned at, known;
} chooser;

static unsigned throw(unsigned n)
{
	chooser.state ^= chooser.state >> 12;
	chooser.state ^= chooser.state << 25;
	chooser.state ^= chooser.state >> 27;
	return (unsigned)(((chooser.state * 0x2545f4914f6cdd1d) >> 33) % n);
}

/* One of 0 to @n - 1. */
unsigned choose(unsigned n)
{
	unsigned i = chooser.at;

	if (n < 2)
		return 0;
	if (chooser.random)
		return throw(n);
	if (i == MANY)
		sim_fail("too many ways");
	if (i >= chooser.known) {
		chooser.answer[i] = 0;
		chooser.of[i] = (unsigned short)n;
		chooser.known = i + 1;
	}
	chooser.at++;
	return chooser.answer[i];
}

/* Return: whether there is another way. */
static bool next_way(void)
{
	unsigned n = chooser.at;

	while (n && chooser.answer[n - 1] + 1 == chooser.of[n - 1])
		n--;
	if (n)
		chooser.answer[n - 1]++;
	chooser.known = n;
	chooser.at = 0;
	return n;
}

/* For the log of a failure. */
void schedule_describe(void)
{
	if (chooser.random)
		support_note("again: CK_RUN_CASE=long MODEL_ROUNDS=1 "
			     "MODEL_SEED=%lu",
			     (unsigned long)chooser.seed);
}

struct action {
	enum act act;
	struct sim_sock *sock;
};

/* Whether it would make a difference. */
static bool is_possible(enum act act, const struct sim_sock *s)
{
	if (!peer_lives(s))
		return false;
	switch (act) {
	case ACT_SEND:
	case ACT_BULK:
	case ACT_URGENT:
	case ACT_PROMISE:
		return peer_window(s);
	case ACT_FIN:
		return !s->fin_in && !s->closed;
	case ACT_RST:
	case ACT_TIMEOUT:
		return !s->closed;
	default:
		return tcp_unsent(s);
	}
}

static bool is_awake(enum act act)
{
	switch (act) {
	case ACT_TURN:
		return world_busy();
	case ACT_TICK:
		return sim_alarm() > sim.now_ns;
	case ACT_START:
		return !world.run[0].started;
	default:
		return true;
	}
}

/* All that may happen now, out of @acts. Return: how many. */
static unsigned list_actions(struct action *a, unsigned acts)
{
	unsigned n = 0;

	for (enum act act = 0; act < ACTS; act++) {
		if (!(acts & BIT(act)))
			continue;
		if (act >= ACT_PEER) {
			if (is_awake(act))
				a[n++] = (struct action){ act, NULL };
			continue;
		}
		for (unsigned i = 0; i < sim.socks; i++)
			if (is_possible(act, &sim.sock[i]))
				a[n++] = (struct action){ act, &sim.sock[i] };
	}
	return n;
}

/* A number for an action: the first if all ways are tried, else any. */
static unsigned number(unsigned fixed, unsigned most)
{
	return chooser.random ? 1 + choose(most) : fixed;
}

/* The same in bytes. */
static unsigned size(unsigned fixed, unsigned most)
{
	return number(fixed, most * world.rules.scale);
}

static void act_peer(const struct action *a)
{
	unsigned n;

	switch (a->act) {
	case ACT_SEND:
		peer_send(a->sock, size(3, 60));
		break;
	case ACT_BULK:
		for (n = number(3, 12); n--;)
			peer_send(a->sock, size(7, 30));
		break;
	case ACT_FIN:
		peer_fin(a->sock);
		break;
	case ACT_RST:
		peer_dies(a->sock, 0);
		break;
	case ACT_TIMEOUT:
		peer_dies(a->sock, ETIMEDOUT);
		break;
	case ACT_URGENT:
		if (chooser.random && choose(2))
			peer_send(a->sock, size(1, 5));
		peer_urgent(a->sock);
		break;
	case ACT_PROMISE:
		peer_promise(a->sock, size(2, 9));
		break;
	case ACT_READ:
		peer_read(a->sock, size(5, 40));
		break;
	default:
		peer_read(a->sock, SIZE_MAX);
	}
}

static void tick(void)
{
	uint64_t now = sim.now_ns, due = sim_alarm(), step;

	step = due > now ? due - now : 0;
	if (chooser.random && choose(2))
		step = 1 + choose(20) * NS_PER_MS;
	trace("time passes", -1, (long)(step / NS_PER_MS), 0);
	sim_advance(step);
}

static void stop(struct run *run)
{
	if (!run->relay || !run->started)
		return;
	trace("relay_stop()", (int)run->sock[0]->id, 0, 0);
	run->stopped = true;
	world.dull = 0;
	relay_stop(run->relay);
}

/* The owner has found out that a peer is dead. */
static void give_up(struct sim_sock *s)
{
	struct run *run = &world.run[s->id / 2];

	if (!run->relay || !run->started || is_over(s))
		return;
	trace("relay_fail()", (int)s->id, 0, 0);
	s->failed = true;
	s->said = s->arrived;
	s->dead_ns = sim.now_ns;
	s->dead_err = ETIMEDOUT;
	world.dull = 0;
	relay_fail(run->relay, s->id % 2, ETIMEDOUT);
}

static void nudge(void)
{
	struct sim_sock *s = &sim.sock[choose(sim.socks)];

	trace("nudge", (int)s->id, 0, 0);
	if (!s->orphan && list_empty(&s->file->ready))
		list_append(&sim.ready, &s->file->ready);
}

static void act(const struct action *a)
{
	switch (a->act) {
	case ACT_TURN:
		world_turn();
		break;
	case ACT_TICK:
		tick();
		break;
	case ACT_TURNS:
		for (unsigned i = 0; i < 70; i++)
			world_turn();
		break;
	case ACT_NUDGE:
		nudge();
		break;
	case ACT_STOP:
		stop(&world.run[choose(world.runs)]);
		break;
	case ACT_FAIL:
		give_up(&sim.sock[choose(sim.socks)]);
		break;
	case ACT_TRIM:
		pipes_close_free(&world.env.pipes);
		break;
	case ACT_START:
		world_start();
		break;
	default:
		act_peer(a);
	}
	if (!world_busy())
		check_sleep();
}

/* For scenes. Return: whether it was possible. */
bool schedule_act(enum act which, unsigned sock)
{
	struct action a = { which, &sim.sock[sock] };

	chooser.random = false;
	if (which < ACT_PEER ? !is_possible(which, a.sock) : !is_awake(which))
		return false;
	act(&a);
	return true;
}

/* What is left to do, in the schedule that is under way. */
static struct {
	unsigned acts, left, mids;
} todo;

/* Before a call of a turn: one of the peers may act, or none. */
static void midway_all(void)
{
	struct action a[ACTS * SIM_SOCKS];
	unsigned n, i;

	if (!todo.left || !todo.mids)
		return;
	n = list_actions(a, todo.acts & (BIT(ACT_PEER) - 1));
	i = choose(n + 1);
	if (!i)
		return;
	todo.left--;
	todo.mids--;
	act_peer(&a[i - 1]);
}

static void run_way(const struct ways *w)
{
	struct action a[ACTS * SIM_SOCKS];
	unsigned n;

	todo.acts = w->acts;
	todo.left = w->depth;
	todo.mids = w->mids;
	world_open(&w->rules);
	sim.midway = midway_all;
	while (todo.left) {
		n = list_actions(a, w->acts | BIT(ACT_TURN));
		if (!n)
			break;
		todo.left--;
		act(&a[choose(n)]);
	}
	sim.midway = NULL;
	world_finish(!w->stall);
	world_close();
}

/**
 * schedule_all() - run every schedule of a kind
 *
 * Return: how many there are.
 */
unsigned long schedule_all(const struct ways *w)
{
	unsigned long n = 0;

	chooser.random = false;
	chooser.known = chooser.at = 0;
	do {
		run_way(w);
		n++;
	} while (next_way());
	return n;
}

/* How likely each act is in a random schedule. */
static const unsigned weight[ACTS] = {
	[ACT_SEND] = 100,  [ACT_BULK] = 80,   [ACT_FIN] = 6,
	[ACT_RST] = 2,	   [ACT_TIMEOUT] = 1, [ACT_URGENT] = 12,
	[ACT_PROMISE] = 4, [ACT_READ] = 90,   [ACT_READ_ALL] = 25,
	[ACT_TURN] = 220,  [ACT_TICK] = 10,   [ACT_TURNS] = 2,
	[ACT_NUDGE] = 10,  [ACT_STOP] = 1,    [ACT_FAIL] = 1,
	[ACT_TRIM] = 3,	   [ACT_START] = 20,
};

/* Return: whether there was one. */
static bool act_random(unsigned acts)
{
	struct action a[ACTS * SIM_SOCKS];
	unsigned n = list_actions(a, acts), sum = 0, i, k;

	for (i = 0; i < n; i++)
		sum += weight[a[i].act];
	if (!sum)
		return false;
	k = choose(sum);
	for (i = 0; k >= weight[a[i].act]; i++)
		k -= weight[a[i].act];
	if (sim.in_turn)
		act_peer(&a[i]);
	else
		act(&a[i]);
	return true;
}

static void midway_random(void)
{
	if (todo.mids && !choose(todo.mids))
		act_random(BIT(ACT_PEER) - 1);
}

/**
 * schedule_random() - run one long schedule
 * @seed:	which one
 * @make_rules:	chooses in what kind of world
 */
void schedule_random(uint64_t seed, void (*make_rules)(struct world_rules *))
{
	struct world_rules rules = { .runs = 1, .scale = 1 };

	chooser.random = true;
	chooser.seed = seed;
	chooser.state = (seed + 1) * 0x9e3779b97f4a7c15;
	make_rules(&rules);
	world_open(&rules);
	todo.acts = BIT(ACTS) - 1;
	todo.mids = choose(3) ? 3 + choose(20) : 0;
	sim.midway = midway_random;
	for (unsigned left = 10 + choose(150); left; left--)
		if (!act_random(todo.acts))
			break;
	sim.midway = NULL;
	if (!choose(4))
		world_wait(1500);
	world_finish(choose(4));
	world_close();
}
