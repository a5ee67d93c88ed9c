/* SPDX-License-Identifier: MIT */
/*
 * schedule.c - schedules of the pump, in the world of test/model
 *
 * The first bytes choose what kind of world; then each byte, or two, is an act
 * of a peer or of time, between turns or before a call within one. What must
 * hold is in test/model: whatever does not ends the program.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "model/schedule.h"

const char *const fuzz_words[] = {
	"\x01\x20", "\x09\x40", "\x02",	    "\x0a",	"\x03",
	"\x04\x10", "\x0c\x08", "\x05\x05", "\x0d\x05", "\x06",
	"\x0e",	    "\x80",	"\x80\x80", "\x81\x82", NULL,
};

#define MOST_ACTS 400

static struct {
	const uint8_t *at, *end;
} input;

static unsigned take(void)
{
	return input.at < input.end ? *input.at++ : 0;
}

static bool can_say(const struct sim_sock *s)
{
	return peer_lives(s) && peer_window(s);
}

/* What a byte below 0x80 means: three bits what, and who. */
static void act_peer(unsigned byte)
{
	struct sim_sock *s = &sim.sock[(byte >> 3) % sim.socks];

	switch (byte & 7) {
	case 0:
	case 1:
		if (can_say(s))
			peer_send(s, 1 + take() % 60);
		break;
	case 2:
		if (can_say(s))
			for (unsigned n = 1 + take() % 12; n--;)
				peer_send(s, 1 + n % 5);
		break;
	case 3:
		if (can_say(s))
			peer_urgent(s);
		break;
	case 4:
		if (peer_lives(s) && tcp_unsent(s))
			peer_read(s, 1 + take() % 60);
		break;
	case 5:
		if (peer_lives(s) && tcp_unsent(s))
			peer_read(s, SIZE_MAX);
		break;
	case 6:
		if (peer_lives(s) && !s->fin_in && !s->closed)
			peer_fin(s);
		break;
	case 7: /* rare, since nothing comes after it */
		if (take() < 64 && peer_lives(s) && !s->closed)
			peer_dies(s, byte & 0x40 ? ETIMEDOUT : 0);
		break;
	}
}

static void act(unsigned byte)
{
	if (byte < 0x80)
		act_peer(byte);
	else if (byte < 0xe0)
		schedule_act(ACT_TURN, 0);
	else if (byte < 0xf4)
		schedule_act(ACT_TICK, 0);
	else if (byte < 0xf8)
		schedule_act(ACT_START, 0);
	else if (byte < 0xfc)
		schedule_act(ACT_TRIM, 0);
	else
		schedule_act(ACT_TURNS, 0);
}

/* Before a call within a turn: one byte, and it is seldom an act. */
static void midway(void)
{
	unsigned byte = take();

	if (byte & 0x80 && input.at < input.end)
		act_peer(byte & 0x7f);
}

static struct world_rules choose_world(void)
{
	unsigned kind = take(), room = take();
	struct world_rules r = {
		.runs = 1 + (kind >> 2) % 3,
		.scale = 1,
		.mode = (enum relay_mode)(kind % 3),
		.own_pipes = (kind & 0x30) == 0x30,
		.late = kind & 0x80,
		.pipe_limit = 1 + (room & 3),
		.pipe_size = 65536,
		.buf_size = 4 + (room >> 2 & 7) * 4,
		.sndbuf = 8 + (room >> 5) * 12,
		.rcvbuf = 60,
		.sim = { .slots = 2 + (kind >> 6 & 1) * 6,
			 .share = 10 + room % 40,
			 .eager = room & 0x10 },
	};

	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world_rules rules;
	bool within, reads;

	setenv("MODEL_FAIL_FAST", "1", 1);
	input.at = data;
	input.end = data + size;
	rules = choose_world();
	within = take() & 1;
	reads = take() % 4;
	world_open(&rules);
	sim.midway = within ? midway : NULL;
	for (unsigned n = 0; n < MOST_ACTS && input.at < input.end; n++)
		act(take());
	sim.midway = NULL;
	world_finish(reads);
	world_close();
	return 0;
}
