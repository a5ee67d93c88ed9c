/* SPDX-License-Identifier: MIT */
/*
 * A scenario: what two peers say to each other through the library, how each
 * ends, and what came of it.
 *
 * All in one thread: the peers do what they can, the context is dispatched,
 * with calls failing then and only then, and so on until the relay is over.
 */
#ifndef FAULT_PLAY_H
#define FAULT_PLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sluice.h"

/**
 * struct part - what one peer does
 * @says:	bytes, in all
 * @shout:	1 + the place of the one that it says as urgent, 0 if none is
 * @gulp:	bytes that it reads in a turn, at most
 * @answers:	it says nothing before it has seen the other's FIN
 * @fin:	it sends its FIN behind the last byte
 * @resets:	it sends a RST behind the last byte, once that has arrived
 */
struct part {
	size_t says, shout, gulp;
	bool answers, fin, resets;
};

/**
 * struct play - a scenario
 * @room:	of the relay's sockets for what is on its way out, 0 as it comes
 */
struct play {
	const char *name;
	struct part part[2];
	int room;
};

enum play_end {
	PLAY_NONE, /* it has seen no end, for long */
	PLAY_EOF,
	PLAY_RESET,
};

/**
 * struct ending - what came of it
 * @denied:	the errno with which sluice_new() or sluice_relay() failed, once;
 *		they were called again, then
 * @over:	there was a result
 * @got:	bytes that each peer has heard, all of them right
 * @end:	which end each has seen
 * @lives:	it did not reset
 * @wrong:	what should never be, or NULL
 */
struct ending {
	int denied;
	bool over;
	struct sluice_result result;
	size_t got[2];
	enum play_end end[2];
	bool lives[2];
	const char *wrong;
};

void play_run(const struct play *play, int mode, struct ending *e);

/* Whether all that was said was heard, and each end seen as it was. If not,
 * @why says what is missing. */
bool play_is_whole(const struct play *play, const struct ending *e,
		   const char **why);

/* Whether it looks cut short to whoever it was cut short for. */
bool play_is_honest(const struct play *play, const struct ending *e,
		    const char **why);

#endif /* FAULT_PLAY_H */
