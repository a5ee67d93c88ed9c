/* SPDX-License-Identifier: MIT */
/*
 * crowd.h - many connections at once, both ends of each in this process
 */
#ifndef LOAD_CROWD_H
#define LOAD_CROWD_H

#include <netinet/in.h>

#include "load/pair.h"

/**
 * struct crowd - all of them
 * @pairs:	by serial; NULL is free
 * @live:	pairs that are not over; @guests: ends that were accepted and
 *		have not heard who they are
 * @count:	of pairs that are over; @unserved: whose client was reset, and
 *		whose server never came; @orderly: which nobody cut short
 * @strangers:	accepted ends that left without having heard who they are
 * @said, @heard: bytes, of all ends, hellos included
 * @wrong:	pairs that did not go as they must
 */
struct crowd {
	int epfd, listener;
	struct pair *pairs[SLOTS];
	struct end *first, **last; /* to be run */
	unsigned live, guests, served;
	uint32_t serial;
	uint64_t count[KINDS], orderly, unserved, strangers, late;
	uint64_t said, heard, resets_heard, fins_heard;
	unsigned wrong;
	uint64_t tick_ms;
	unsigned patience_ms;
};

int crowd_open(struct crowd *c, unsigned patience_ms);
uint16_t crowd_port(const struct crowd *c);

/* Begins another connection, to @to. Return: 0, or a negative errno. */
int crowd_connect(struct crowd *c, const struct sockaddr_in *to);

/* Does what can be done, and waits a moment if that is nothing. */
void crowd_turn(struct crowd *c);

/* Lets those that were held begin. */
void crowd_release(struct crowd *c);

#endif
