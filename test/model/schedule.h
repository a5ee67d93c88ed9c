/* SPDX-License-Identifier: MIT */
/*
 * schedule.h - who acts when: all short ways, and long ones by chance
 */
#ifndef MODEL_SCHEDULE_H
#define MODEL_SCHEDULE_H

#include "model/world.h"

/* What peers do, and below ACT_PEER what else may happen. */
enum act {
	ACT_SEND, /* a segment */
	ACT_BULK, /* several at once */
	ACT_FIN,
	ACT_RST,
	ACT_TIMEOUT, /* the connection dies of ETIMEDOUT */
	ACT_URGENT,
	ACT_PROMISE, /* an urgent byte is announced, and comes later */
	ACT_READ,    /* some */
	ACT_READ_ALL,
	ACT_PEER,
	ACT_TURN = ACT_PEER,
	ACT_TICK,  /* time passes, up to the next deadline */
	ACT_TURNS, /* other connections keep the loop busy */
	ACT_NUDGE, /* an edge without a cause */
	ACT_STOP,  /* relay_stop() */
	ACT_FAIL,  /* relay_fail() */
	ACT_TRIM,  /* pipes_close_free() */
	ACT_START, /* relay_start() */
	ACTS
};

#define BIT(act) (1u << (act))

#define ENDS	(BIT(ACT_SEND) | BIT(ACT_FIN) | BIT(ACT_RST) | BIT(ACT_READ_ALL))
#define WINDOWS (BIT(ACT_SEND) | BIT(ACT_BULK) | BIT(ACT_READ) | BIT(ACT_FIN))
#define URGENTS (BIT(ACT_SEND) | BIT(ACT_URGENT) | BIT(ACT_FIN) | BIT(ACT_RST))
#define STALLS	(BIT(ACT_BULK) | BIT(ACT_FIN) | BIT(ACT_RST) | BIT(ACT_READ))

/**
 * struct ways - which schedules
 * @acts:	what may happen, bits; turns always may
 * @depth:	how many acts, turns and ticks included
 * @mids:	how many of them within a turn, before any of its calls
 * @stall:	peers do not read at the end
 */
struct ways {
	struct world_rules rules;
	unsigned acts, depth, mids;
	bool stall;
};

/**
 * struct scene - a schedule that is played, with a fault at each call in turn
 * @text:	two letters an act: which, and whose (scenes.c)
 */
struct scene {
	const char *name, *text;
	struct world_rules rules;
};

unsigned long schedule_all(const struct ways *w);
void schedule_random(uint64_t seed, void (*rules)(struct world_rules *));
bool schedule_act(enum act act, unsigned sock);

/* scenes.c */
extern const struct scene scenes[];
extern const unsigned n_scenes;
unsigned long scene_play(const struct scene *scene, unsigned kind);

#endif /* MODEL_SCHEDULE_H */
