/* SPDX-License-Identifier: MIT */
/*
 * stats.h - what the relays of one thread did, in numbers
 *
 * At rest these add up:
 *
 *	splice_in + recv + discard bytes = splice_out + send + discard bytes
 *					   + bytes dropped for each reason
 *
 * where spilled bytes are counted on neither side: they stay inside.
 */
#ifndef RELAY_STATS_H
#define RELAY_STATS_H

#include "base/counter.h"

/* Calls that move bytes: name, what it is. */
#define RELAY_CALLS(X)                                      \
	X(splice_in, "splice(2) from a socket into a pipe") \
	X(splice_out, "splice(2) from a pipe to a socket")  \
	X(recv, "recv(2) from a socket into a buffer")      \
	X(send, "send(2) from a buffer to a socket")        \
	X(spill, "read(2) from a pipe into a buffer")       \
	X(discard, "recv(2) of what had nowhere to go")

/* Why a lane that would have used a pipe used a buffer: name, in words. */
#define RELAY_FALLBACKS(X)                                           \
	X(pipe_descriptors, "no descriptors for another pipe")       \
	X(pipe_quota, "the user's quota of pipe pages is used up")   \
	X(pipe_refused, "pipe2(2) refused for another reason")       \
	X(pipe_share, "all pipes of this worker's share are in use") \
	X(splice_in, "splice(2) from the source refused")            \
	X(splice_out, "splice(2) to the sink refused")               \
	X(urgent, "urgent data under way")                           \
	X(uring, "io_uring refused by the kernel, or a sandbox")

/* Why bytes that had been read were not delivered: name, in words. */
#define RELAY_DROPS(X)                                      \
	X(sink_gone, "the peer to send to was gone")        \
	X(source_reset, "the peer that sent had reset, "    \
			"and the other took too long")      \
	X(pipe_broken, "read(2) of a pipe failed half way") \
	X(stopped, "cut off by the operator or by a time limit")

/* What --mode=auto chose, each time that it changed: name, what, why. */
#define RELAY_CHOICES(X)                                 \
	X(bulk, "pipe", "the source had much at once")   \
	X(small, "buffer", "fills too small for a pipe") \
	X(thin, "buffer", "fragments too small for a pipe's slots")

struct relay_call {
	counter calls, bytes;
};

enum relay_fallback {
	FALLBACK_none,
#define X(name, words) FALLBACK_##name,
	RELAY_FALLBACKS(X)
#undef X
		FALLBACKS
};

enum relay_choice {
	CHOICE_none, /* nothing but the buffer that every lane begins with */
#define X(name, what, why) CHOICE_##name,
	RELAY_CHOICES(X)
#undef X
		CHOICES
};

enum relay_drop {
#define X(name, words) DROP_##name,
	RELAY_DROPS(X)
#undef X
		DROPS
};

/**
 * struct relay_stats - written by the thread that relays, read by any
 * @source_empty:	EAGAIN from a read: nothing more to read
 * @sink_full:		EAGAIN from a write: the peer takes no more for now
 * @no_memory:		ENOMEM or ENOBUFS from either, tried again later; or
 *			an engine's
 * @fallbacks:		by enum relay_fallback
 * @choices:	by enum relay_choice
 * @dropped:	bytes, by enum relay_drop; what DISCARD read is in
 *			discard alone
 * @pipes_made:		ever; @pipes_now: open now, free or lent
 * @pipes_lent:		times one was lent
 * @pipes_out:		lent now; @pipes_out_max: and at most
 * @buffers_now:	buffers that hold bytes now
 */
struct relay_stats {
#define X(name, words) struct relay_call name;
	RELAY_CALLS(X)
#undef X
	counter source_empty, sink_full, no_memory;
	counter fallbacks[FALLBACKS];
	counter choices[CHOICES];
	counter dropped[DROPS];
	counter pipes_made, pipes_now, pipes_lent, pipes_out, pipes_out_max;
	counter buffers_now, buffers_max;
};

static inline void relay_call(struct relay_call *c, uint64_t bytes)
{
	counter_add(&c->calls, 1);
	counter_add(&c->bytes, bytes);
}

#endif /* RELAY_STATS_H */
