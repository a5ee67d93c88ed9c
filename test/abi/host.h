/* SPDX-License-Identifier: MIT */
/*
 * What a program that has the library does: a context, and relays in it,
 * between peers that the test plays.
 *
 *	peer[0] ===== side[0]  relay  side[1] ===== peer[1]
 */
#ifndef ABI_HOST_H
#define ABI_HOST_H

#include "sluice.h"
#include "support/peer.h"
#include "support/suite.h"

#define MODES 3

struct call {
	int peer[2], side[2];
	uint64_t id;
};

struct sluice *host_open(int mode);

/* Makes the sockets; and hands them over, too. */
void call_plug(struct call *c);
void call_make(struct sluice *s, struct call *c, void *userdata,
	       unsigned timeout_ms);
void call_hang_up(struct call *c);

/*
 * Polls sluice_fd() and dispatches when it is readable, and only then, until
 * there is a result. When nothing is told of for @quiet_ms, that is a stall.
 */
void host_pop(struct sluice *s, struct sluice_result *r, int quiet_ms);

/* The same for @ms, in which no relay may end. Return: how many times it was
 * readable. */
int host_serve(struct sluice *s, int ms);

#endif /* ABI_HOST_H */
