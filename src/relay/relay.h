/* SPDX-License-Identifier: MIT */
/*
 * relay.h - two connected sockets and the bytes between them
 *
 *	        +--------- lane[0] ---------->+
 *	side[0] |                             | side[1]
 *	        +<-------- lane[1] -----------+
 *
 * lane[i] carries what side[i] says to side[!i]. Nothing in here knows which
 * side is the client.
 */
#ifndef RELAY_RELAY_H
#define RELAY_RELAY_H

#include "net/loop.h"
#include "relay/pipes.h"

enum relay_mode {
	RELAY_SPLICE,
	RELAY_COPY,
	RELAY_AUTO,  /* each lane as choose.c learns */
	RELAY_URING, /* as RELAY_COPY, by io_uring where it can */
};

/**
 * struct relay_env - what the relays of one thread share
 * @engine:	what takes lanes over from the pump, NULL without: see engine.h
 * @refused:	why there is none though @mode asks for one, an enum
 *		relay_fallback
 * @mode:	which conduit a lane borrows when nothing forbids it
 * @own_pipes:	a lane keeps its pipe until the relay ends
 * @budget:	bytes that a lane reads in a turn before the others have theirs
 * @idle_ms:	a relay ends when no byte has moved for so long; 0 is never
 * @half_close_ms: the same, once one side has said FIN
 * @linger_ms:	once a side is gone: how long the other side has to take what
 *		is on its way to it
 * @discard_max: bytes that are read and thrown away of a side whose peer is
 *		gone, while it is still being told what that peer said
 */
struct relay_env {
	struct loop *loop;
	struct relay_stats stats;
	struct bufs bufs;
	struct pipes pipes;
	struct engine *engine;
	enum relay_fallback refused;
	enum relay_mode mode;
	bool own_pipes;
	size_t budget;
	unsigned idle_ms, half_close_ms;
	unsigned linger_ms;
	size_t discard_max;
};

/**
 * struct side - one socket of a relay, and how it ended
 * @watch:	registered by the owner for LOOP_SOCKET
 * @index:	0 or 1: which one it is
 * @local:	it is no TCP socket: what lies in it may end a read before the
 *		last byte, as a message does that came with descriptors
 * @urgent:	it has said something urgent that is still to be read
 * @fin:	it has said FIN, and all before it was read
 * @gone:	its connection is dead; @error tells how, once it is known
 * @failed:	it is gone for us, not for TCP: no end will be read behind what
 *		has arrived
 * @short_write:	the last write to it took less than it was given, out of a pipe,
 *		and nothing has told why yet
 * @error:	positive errno, 0 if it is not known: then it was a RST
 * @read_before: bytes that the owner had read from it before the start
 */
struct side {
	struct watch watch;
	uint8_t index;
	bool local, urgent, fin, gone, failed, short_write;
	int error;
	uint64_t read_before;
};

/*
 * enum lane_state - how far one direction has come
 *
 *	OPEN ----- source said FIN ---------------> DRAINING
 *	DRAINING - nothing held, FIN passed on ---> SHUT
 *	OPEN ----- source is gone, all was read --> ENDED
 *	OPEN ----- sink is gone ------------------> DISCARD
 *	DRAINING - sink is gone ------------------> ENDED
 *	DISCARD -- nothing more to read ----------> ENDED
 *
 * DISCARD reads what the source still says and throws it away, so that it does
 * not hang in a write before it has seen what the sink said last. Neither in SHUT
 * nor in ENDED does the lane hold bytes; after ENDED no FIN follows.
 */
enum lane_state {
	LANE_OPEN,
	LANE_DRAINING,
	LANE_DISCARD,
	LANE_SHUT,
	LANE_ENDED,
};

/**
 * struct lane - one direction
 * @conduit:	what holds its bytes now, or NULL
 * @own:	the conduit of an engine that moves this lane, NULL without
 * @ahead:	bytes that such an engine has received and the lane has not read
 * @write_failed: a write of such an engine has, for good, and the lane has yet
 *		to learn it
 * @state:	see above
 * @no_pipe:	this socket pair has refused splice(2): use buffers
 * @urgent:	holds an urgent byte, @urgent_byte, and nothing else
 * @use_pipe:	for auto: what to borrow next, and @why, an enum relay_choice;
 *		@run fills in a row spoke against it, for the reason @run_of;
 *		@backoff: how often pipes turned out to be for nothing
 * @no_pipe_before: for auto: no pipe until so many bytes were read
 * @more_expected:	for auto: the source has not been found empty since the last fill
 * @full_since:	for auto: on buffers, bytes read when a fill was last a small one;
 *		on pipes, when it changed to them
 * @read:	bytes that its source said, and that we read
 * @delivered:	of those: bytes that the sink's kernel has taken
 * @by_pipe:	of those: out of a pipe
 */
struct lane {
	struct conduit *conduit;
	struct conduit *own;
	size_t ahead;
	bool write_failed;
	uint8_t state;
	bool no_pipe;
	bool urgent;
	unsigned char urgent_byte;
	bool use_pipe, more_expected;
	uint8_t why, run, run_of, backoff;
	uint64_t no_pipe_before, full_since;
	uint64_t read, delivered, by_pipe;
};

/* Why the owner stopped a relay, or it stopped itself. */
enum relay_stop {
	RELAY_RUNS,
	RELAY_STOPPED,	   /* relay_stop() */
	RELAY_LINGERED,	   /* linger_ms had passed */
	RELAY_IDLE,	   /* idle_ms had */
	RELAY_HALF_CLOSED, /* half_close_ms, or idle_ms, had */
};

/**
 * struct relay - one relayed connection, embedded in its owner
 * @timer:	asks again: for memory, or whether a peer has all its bytes
 * @idle:	looks whether bytes move; @idle_moved: how many had when it
 *		last looked, and @idle_checks times before
 * @give_up_ns:	when to stop asking, 0 if no side is gone
 * @wait_ms:	the pause before it next asks
 * @starved:	something could not be done for want of memory
 * @idle_unarmed: of that: @idle is to be set
 * @first_gone:	which side was gone first, -1 if none is
 * @stop:	whether it ended other than by its peers' ends
 * @done:	called exactly once after relay_start(), between batches, with
 *		nothing in the relay in use or linked any more; may free it
 */
struct relay {
	struct relay_env *env;
	struct side side[2];
	struct lane lane[2];
	struct job job;
	struct timer timer, idle;
	uint64_t idle_moved;
	uint64_t give_up_ns;
	unsigned wait_ms;
	bool starved, idle_unarmed;
	int8_t first_gone;
	uint8_t idle_checks;
	enum relay_stop stop;
	void (*done)(struct relay *r);
};

/*
 * Whether nothing of a relay is linked anywhere: neither its job, nor a timer, nor
 * a watch in doubt, nor does an engine have a lane of it. Then it may be freed.
 */
static inline bool relay_is_unlinked(const struct relay *r)
{
	for (unsigned i = 0; i < 2; i++)
		if (!list_empty(&r->side[i].watch.recheck) || r->lane[i].own)
			return false;
	return list_empty(&r->job.node) && !timer_is_set(&r->timer) &&
	       !timer_is_set(&r->idle);
}

/* How a side ended, for who wants to tell. */
enum relay_end {
	RELAY_END_OPEN, /* it had not ended */
	RELAY_END_FIN,
	RELAY_END_RESET,
	RELAY_END_ERROR, /* side.error */
};

int relay_env_init(struct relay_env *env, struct loop *loop, size_t buf_size,
		   size_t pipe_size, unsigned pipe_limit);
void relay_env_fini(struct relay_env *env);

void relay_init(struct relay *r, struct relay_env *env);
void relay_start(struct relay *r, void (*done)(struct relay *));
void relay_stop(struct relay *r);
void relay_fail(struct relay *r, unsigned i, int err);

enum relay_end relay_how(const struct relay *r, unsigned i);
bool relay_is_clean(const struct relay *r);

/* pump.c: what runs the lanes when the sockets are ready */
void pump_ready(struct watch *w);
void pump_run(struct job *j);

/* urgent.c */
bool urgent_look(struct relay *r, struct side *from);
ssize_t urgent_fill(struct relay *r, unsigned i);
ssize_t urgent_drain(struct relay *r, unsigned i);

#endif /* RELAY_RELAY_H */
