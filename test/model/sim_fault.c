/* SPDX-License-Identifier: MIT */
/*
 * sim_fault.c - calls that fail though nothing is wrong with the connection
 *
 * Want of memory, of descriptors, of pipe pages; a signal; splice(2) refused
 * for good at a socket; an error of our own that breaks a stream. Never EAGAIN:
 * without an edge to follow it would be a lie.
 *
 * Either one call in so many fails (rules.faults), or the n-th does and the
 * schedule is run again for each n (rules.fault_nth).
 */
#include "model/sim.h"

#include <errno.h>

#define KINDS 4

/* What each call may fail with; a short list repeats its last. */
static const int errors[CALLS][KINDS] = {
	[CALL_SPLICE_IN] = { EINTR, ENOMEM, EINVAL, EINVAL },
	[CALL_SPLICE_OUT] = { EINTR, ENOBUFS, ENOMEM, EINVAL },
	[CALL_RECV] = { EINTR, ENOMEM, ENOBUFS, EIO },
	[CALL_SEND] = { EINTR, ENOMEM, ENOBUFS, EIO },
	[CALL_READ] = { EINTR, EINTR, EINTR, EIO },
	[CALL_PIPE] = { EMFILE, ENFILE, ENOMEM, ENOMEM },
	[CALL_GROW] = { EPERM, EPERM, ENOMEM, ENOMEM },
	[CALL_WAIT] = { EINTR, EINTR, EINTR, EINTR },
	[CALL_TIMER] = { ENOMEM, ENOMEM, ENOMEM, ENOMEM },
	[CALL_MEMORY] = { ENOMEM, ENOMEM, ENOMEM, ENOMEM },
};

/* What is for ever is only asked for where the rules have it. */
static bool is_allowed(enum sim_call call, int err)
{
	if (err == EINVAL)
		return sim.rules.refuse;
	if (err == EIO)
		return sim.rules.broken;
	return errors[call][0] != 0;
}

static int pick(enum sim_call call)
{
	const struct sim_rules *r = &sim.rules;
	unsigned kind;

	if (r->barren && (call == CALL_MEMORY || call == CALL_PIPE))
		return ENOMEM;
	if (r->fault_nth) {
		if (++sim.faultable != r->fault_nth)
			return 0;
		sim.fault_fired = true;
		kind = r->fault_kind % KINDS;
	} else {
		if (!r->faults || choose(r->faults))
			return 0;
		kind = choose(KINDS);
	}
	return is_allowed(call, errors[call][kind]) ? errors[call][kind] : 0;
}

/**
 * sim_fault() - whether a call is to fail
 * @s:		the socket it is about, or NULL
 *
 * Return: positive errno, or 0 if it is carried out.
 */
int sim_fault(enum sim_call call, struct sim_sock *s)
{
	int err = 0;

	if (s && call == CALL_SPLICE_IN && s->no_in)
		return EINVAL;
	if (s && call == CALL_SPLICE_OUT && s->no_out)
		return EINVAL;
	if (sim.in_turn && errors[call][0])
		err = pick(call);
	if (err == EINVAL && call == CALL_SPLICE_IN)
		s->no_in = true;
	if (err == EINVAL && call == CALL_SPLICE_OUT)
		s->no_out = true;
	if (err == ENOMEM || err == ENOBUFS || err == EIO)
		sim.hungry_turn = sim.turn;
	if (err == EIO && s)
		s->broke = s->twin->broke = true;
	if (err)
		sim.count.faults++;
	if (err)
		trace("a fault", (int)call, err, 0);
	return err;
}
