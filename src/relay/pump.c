/* SPDX-License-Identifier: MIT */
/*
 * pump.c - runs a relay's lanes whenever its sockets are ready
 *
 * DOC: Theory of operation
 *
 * A relay runs as a job, between batches: first one lane, then the other; see
 * lane.c for how a lane moves. The rest is about ends.
 *
 * A side can end in two ways. FIN is read, as 0, behind its last byte, and is
 * passed on when that byte has left. Or the connection is gone: an error is
 * read behind the last byte, or a write fails, or epoll says EPOLLERR when
 * there may be nothing to read or write at all. Whatever told of it, then
 *
 *	the lane to that side throws away what it holds and what it reads,
 *	the lane from that side goes on until all that was received before is
 *	  read and delivered, with the FIN if there was one,
 *	and only when the other side's kernel has acknowledged all of it, or
 *	  linger_ms have passed, is the relay over, and the other side reset:
 *	  an abortive close throws away what is queued to send (K30).
 */
#include <assert.h>

#include "base/util.h"
#include "net/sock.h"
#include "relay/engine.h"
#include "relay/lane.h"

/* The pause before memory is asked for again. */
#define STARVED_MS 10

/* The pauses between two looks at whether a peer has acknowledged all. */
#define OUTQ_FIRST_MS 1
#define OUTQ_MAX_MS   64

static struct relay *relay_of(struct side *s)
{
	return container_of(s - s->index, struct relay, side[0]);
}

/* Acts on what an edge said of side @i beyond "readable" and "writable". */
static void side_look(struct relay *r, unsigned i)
{
	struct side *s = &r->side[i];
	uint32_t ready = s->watch.ready;

	if (ready & EPOLLPRI) {
		watch_clear(&s->watch, EPOLLPRI);
		side_urgent(r, s);
	}
	/* Or the owner has read the error; or nobody was told of it, but both
	 * directions are shut and we have not said FIN. */
	if (ready & EPOLLERR || s->error ||
	    (ready & EPOLLHUP && r->lane[!i].state != LANE_SHUT))
		side_gone(r, i, 0);
}

static void pump_timer(struct timer *t)
{
	struct relay *r = container_of(t, struct relay, timer);

	loop_soon(r->env->loop, &r->job);
}

/* Runs the relay again at @due_ns. */
static void pump_at(struct relay *r, uint64_t due_ns)
{
	if (timer_is_set(&r->timer) && r->timer.due_ns <= due_ns)
		return;
	/* Without memory for a deadline: ask all the time, it will pass. */
	if (loop_timer(r->env->loop, &r->timer, due_ns, pump_timer))
		loop_again(r->env->loop, &r->job);
}

/* Runs it again when there may be memory for what it could not do. */
void pump_starved(struct relay *r)
{
	pump_at(r, now_ns() + STARVED_MS * NS_PER_MS);
}

/*
 * One side is gone. Return: whether the other has been told all that it said;
 * if not, this is asked again.
 */
static bool gone_is_told(struct relay *r, unsigned gone)
{
	struct lane *l = &r->lane[gone];
	uint64_t now = now_ns(), due = r->give_up_ns;
	bool passed = l->state == LANE_SHUT || l->state == LANE_ENDED;

	if (passed && !sock_outq(r->side[!gone].watch.fd))
		return true;
	if (now >= r->give_up_ns) {
		r->stop = RELAY_LINGERED;
		return true;
	}
	if (passed) { /* an acknowledgement is announced by nothing */
		r->wait_ms = r->wait_ms ? 2 * r->wait_ms : OUTQ_FIRST_MS;
		if (r->wait_ms > OUTQ_MAX_MS)
			r->wait_ms = OUTQ_MAX_MS;
		if (now + r->wait_ms * NS_PER_MS < due)
			due = now + r->wait_ms * NS_PER_MS;
	}
	pump_at(r, due);
	return false;
}

static bool pump_is_over(struct relay *r)
{
	bool gone[2] = { r->side[0].gone, r->side[1].gone };

	if (r->stop || (gone[0] && gone[1]))
		return true;
	if (gone[0] || gone[1])
		return gone_is_told(r, gone[1]);
	return relay_is_clean(r);
}

/* Takes the relay off all lists of the loop. */
static void pump_unlink(struct relay *r)
{
	loop_untimer(r->env->loop, &r->timer);
	loop_untimer(r->env->loop, &r->idle);
	recheck_cancel(&r->side[0].watch);
	recheck_cancel(&r->side[1].watch);
	list_remove(&r->job.node);
}

static void pump_end(struct relay *r)
{
	enum relay_drop why = r->stop == RELAY_RUNS	  ? DROP_sink_gone
			      : r->stop == RELAY_LINGERED ? DROP_source_reset
							  : DROP_stopped;

	lane_drop(r, &r->lane[0], why);
	lane_drop(r, &r->lane[1], why);
	if (r->env->engine)
		r->env->engine->ops->stop(r, why);
	/* Last: what an engine has learned of meanwhile, in there or when a lane
	 * ran, may have asked for another run. */
	pump_unlink(r);
	assert(relay_is_unlinked(r));
	r->done(r);
}

/* The relay's job. */
void pump_run(struct job *j)
{
	struct relay *r = container_of(j, struct relay, job);
	int gone;
	bool more;

	r->starved = false;
	if (r->idle_unarmed)
		idle_start(r);
	/* First: what it has eaten, a read shows as 0 (K20). */
	for (unsigned i = 0; i < 2; i++)
		if (r->lane[i].write_failed)
			lane_run(r, i);
	side_look(r, 0);
	side_look(r, 1);
	do { /* an end found by one lane changes what the other does */
		gone = r->side[0].gone + r->side[1].gone;
		more = lane_run(r, 0);
		more |= lane_run(r, 1);
	} while (gone != r->side[0].gone + r->side[1].gone);

	if (pump_is_over(r))
		pump_end(r);
	else if (more)
		loop_again(r->env->loop, &r->job);
	else if (r->starved)
		pump_starved(r);
}

/* The callback of both watches. */
void pump_ready(struct watch *w)
{
	struct side *s = container_of(w, struct side, watch);
	struct relay *r = relay_of(s);

	loop_soon(r->env->loop, &r->job);
}
