/* SPDX-License-Identifier: MIT */
/*
 * scenes.c - short plays in which any one call may fail
 *
 * A scene is played once for each call in it that can fail, and for each way in
 * which that can. Two letters are an act: what, and which socket's peer does
 * it. Relay 0 is sockets 0 and 1, relay 1 is 2 and 3. After each act the loop
 * runs until it would sleep.
 */

#include "model/schedule.h"

#define SMALL                                                        \
	.scale = 1, .pipe_limit = 2, .runs = 1, .pipe_size = 131072, \
	.buf_size = 16, .sndbuf = 24, .rcvbuf = 60

#define KERNEL .slots = 3, .share = 20, .refuse = true

const struct scene scenes[] = {
	{ "bulk both ways with small windows, FINs in order",
	  "b0 b1 r1 b0 r0 s1 R1 f0 R1 b1 R0 f1 R0",
	  { SMALL, .sim = { KERNEL } } },
	{ "the same through buffers",
	  "b0 b1 r1 b0 r0 s1 R1 f0 R1 b1 R0 f1 R0",
	  { SMALL, .mode = RELAY_COPY, .sim = { KERNEL } } },
	{ "the same with pipes of their own",
	  "b0 b1 r1 b0 r0 s1 R1 f0 R1 b1 R0 f1 R0",
	  { SMALL, .own_pipes = true, .sim = { KERNEL } } },
	{ "a RST behind bytes that are slow to be read",
	  "b0 b0 s1 x0 t. r1 t. r1 t. R1 t. t.",
	  { SMALL, .sim = { KERNEL } } },
	{ "a sink that is gone while its peer still sends",
	  "b0 s1 f1 b0 x1 b0 b0 b0 R0 f0",
	  { SMALL, .sim = { KERNEL } } },
	{ "urgent bytes among others",
	  "s0 u0 s0 R1 u0 b0 r1 p0 b0 R1 u1 s1 f1 R0 f0",
	  { SMALL, .sim = { KERNEL } } },
	{ "ends are learnt of while the only buffer is held by a stalled lane",
	  "b0 b0 f2 f3 f0 x1",
	  { .scale = 1,
	    .runs = 2,
	    .mode = RELAY_COPY,
	    .buf_size = 8,
	    .sndbuf = 10,
	    .rcvbuf = 60,
	    .sim = { KERNEL, .barren = true } } },
	{ "a stalled pipe changes hands",
	  "b0 b0 n. b2 R3 b2 n. R3 R1 f0 f2 R1 R3 f1 f3",
	  { .scale = 1,
	    .pipe_limit = 1,
	    .runs = 2,
	    .pipe_size = 65536,
	    .buf_size = 8,
	    .sndbuf = 10,
	    .rcvbuf = 60,
	    .sim = { KERNEL, .broken = true, .sip = 3 } } },
};

const unsigned n_scenes = sizeof(scenes) / sizeof(scenes[0]);

static const struct {
	char letter;
	enum act act;
} letters[] = {
	{ 's', ACT_SEND },  { 'b', ACT_BULK },	   { 'f', ACT_FIN },
	{ 'x', ACT_RST },   { 'u', ACT_URGENT },   { 'p', ACT_PROMISE },
	{ 'r', ACT_READ },  { 'R', ACT_READ_ALL }, { 't', ACT_TICK },
	{ 'n', ACT_TURNS },
};

static void play_act(const char *two)
{
	for (unsigned i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (letters[i].letter == two[0])
			schedule_act(letters[i].act,
				     two[1] == '.' ? 0
						   : (unsigned)(two[1] - '0'));
	world_settle();
}

/* Plays it once. Return: whether the fault has come. */
static bool play(const struct scene *scene, unsigned nth, unsigned kind)
{
	struct world_rules rules = scene->rules;

	rules.sim.fault_nth = nth;
	rules.sim.fault_kind = kind;
	world_open(&rules);
	world_settle();
	for (const char *p = scene->text; *p; p += p[2] ? 3 : 2)
		play_act(p);
	if (rules.sim.barren && (world.run[0].relay || world.run[1].relay))
		sim_fail("an end is not learnt of");
	world_finish(true);
	world_close();
	return sim.fault_fired;
}

/**
 * scene_play() - play it with the first call failing, the second, and so on
 * @kind:	0 to 3: which of its errors a call fails with
 *
 * Return: how many times.
 */
unsigned long scene_play(const struct scene *scene, unsigned kind)
{
	unsigned nth = 1;

	while (play(scene, nth, kind))
		nth++;
	return nth;
}
