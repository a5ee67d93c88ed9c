/* SPDX-License-Identifier: MIT */
/*
 * lane.c - one direction of a relay: fill, drain, half-close
 *
 * DOC: Theory of operation
 *
 * A lane that holds bytes drains; one that holds none fills; and so on, until a
 * socket says EAGAIN or the lane has read its budget and goes to the back.
 *
 * A conduit is filled only when it is empty. So EAGAIN from a fill speaks of
 * the source alone, EAGAIN from a drain of the sink alone, and each takes away
 * the one readiness bit that it disproves. The next edge sets it again.
 *
 * Which error of a side came first decides what 0 means once it is gone. A RST
 * after that peer's FIN is reported as EPIPE, otherwise as ECONNRESET, and only
 * once; if a write has eaten it, the reads end in 0 as after a FIN (K20). A write
 * may even eat it without telling: see side_fin_received().
 */
#include "relay/lane.h"

#include <sys/socket.h>

#include "base/probe.h"
#include "base/shortage.h"
#include "base/util.h"
#include "net/sock.h"
#include "relay/engine.h"
#include "relay/errors.h"

/* A fill that is no message somebody waits for. */
#define BULK_FILL ((size_t)16 << 10)

/* A fill that took no more than this part of a pipe has most likely emptied the
 * source: only fragments of less than 256 bytes fill all slots with so little,
 * and of bulk there is more at once. */
#define SHORT_PART 16

/* What one step of a lane came to. */
enum step {
	STEP_WAIT, /* nothing more to do before something happens */
	STEP_GO,   /* look again */
};

static void lane_give(struct lane *l)
{
	if (l->conduit)
		l->conduit->ops->give(l->conduit);
	l->conduit = NULL;
}

/* Throws away what the lane holds. */
void lane_drop(struct relay *r, struct lane *l, enum relay_drop why)
{
	if (l->own)
		r->env->engine->ops->settle(l);
	counter_add(&r->env->stats.dropped[why], lane_held(l));
	lane_give(l);
	l->urgent = false;
}

/* Notes that a connection is dead; @err is 0 if nothing has told how. */
void side_gone(struct relay *r, unsigned i, int err)
{
	struct side *s = &r->side[i];
	struct lane *to_it = &r->lane[!i];

	if (!s->error)
		s->error = err;
	if (s->gone)
		return;
	s->gone = true;
	s->failed |= err && !error_is_end(err);
	if (r->first_gone < 0)
		r->first_gone = (int8_t)i;
	watch_set(&s->watch, LOOP_READABLE); /* for what came before its end */
	r->give_up_ns = now_ns() + r->env->linger_ms * NS_PER_MS;
	if (to_it->state == LANE_OPEN || to_it->state == LANE_DRAINING) {
		lane_drop(r, to_it, DROP_sink_gone);
		to_it->state =
			to_it->state == LANE_OPEN ? LANE_DISCARD : LANE_ENDED;
	}
}

/* From here to the mark, its lane reads with recv(2): see urgent.c. */
void side_urgent(struct relay *r, struct side *s)
{
	if (!s->urgent && r->env->mode != RELAY_COPY) {
		probe(fallback, r, s->index, FALLBACK_urgent);
		counter_add(&r->env->stats.fallbacks[FALLBACK_urgent], 1);
	}
	s->urgent = true;
}

/*
 * Whether the peer of side @i has said FIN, read or not, as far as can be told.
 *
 * A splice(2) that meets a RST when it has already moved something reports what
 * it has moved, and nobody is ever told of the error: the next write says EPIPE
 * and the next read 0, as if there had been a FIN before.
 */
static bool side_fin_received(const struct relay *r, unsigned i)
{
	const struct side *s = &r->side[i];

	return s->fin ||
	       sock_fin_received(s->watch.fd, s->read_before + r->lane[i].read +
						      r->lane[i].ahead);
}

/* The source said 0: its FIN, unless a write has eaten its RST before. */
static void lane_eof(struct relay *r, unsigned i)
{
	struct side *from = &r->side[i];
	struct lane *l = &r->lane[i];

	watch_clear(&from->watch, LOOP_READABLE);
	if (from->short_write && !side_fin_received(r, i))
		side_gone(r, i, ECONNRESET);
	if (from->gone && from->error && from->error != EPIPE) {
		l->state = LANE_ENDED;
		return;
	}
	from->fin = true;
	l->state = l->state == LANE_OPEN ? LANE_DRAINING : LANE_ENDED;
}

/* A read of the source of lane @i has failed. */
static enum step lane_read_failed(struct relay *r, unsigned i, int err)
{
	struct side *from = &r->side[i];

	if (err == EAGAIN) {
		watch_clear(&from->watch, LOOP_READABLE);
		recheck_confirmed(&r->env->loop->recheck, &from->watch);
		probe(source_empty, r, i);
		counter_add(&r->env->stats.source_empty, 1);
		r->lane[i].more_expected = false;
		if (from->failed)
			r->lane[i].state = LANE_ENDED;
		return STEP_WAIT;
	}
	if (err == EINPROGRESS)
		return STEP_WAIT;
	if (err == EINTR)
		return STEP_GO;
	if (shortage_of_memory(err)) {
		probe(no_memory, r, i);
		counter_add(&r->env->stats.no_memory, 1);
		r->starved = true;
		return STEP_WAIT;
	}
	side_gone(r, i, err);
	r->lane[i].state = LANE_ENDED;
	return STEP_WAIT;
}

/* Goes on with a buffer where splice(2) is refused: nothing is lost. */
static void lane_refused(struct relay *r, unsigned i, enum relay_fallback why)
{
	probe(fallback, r, i, why);
	r->lane[i].no_pipe = true;
	counter_add(&r->env->stats.fallbacks[why], 1);
}

/* Gets a conduit to fill. Return: whether there is one. */
static bool lane_borrow(struct relay *r, unsigned i)
{
	struct relay_env *env = r->env;
	struct lane *l = &r->lane[i];
	bool pipe = l->use_pipe && !l->no_pipe && !r->side[i].urgent;
	struct buf *b;
	enum relay_fallback why;

	if (l->own) {
		l->conduit = l->own;
		return true;
	}
	/* It still has the one that it has just emptied, or one of its own:
	 * every fill is a fresh choice. */
	if (l->conduit && l->conduit->ops->is_pipe != pipe)
		lane_give(l);
	if (l->conduit)
		return true;
	if (pipe) {
		why = pipe_take(&env->pipes, &l->conduit);
		if (!why)
			return true;
		probe(fallback, r, i, why);
		counter_add(&env->stats.fallbacks[why], 1);
	}
	b = buf_take(&env->bufs);
	if (b)
		l->conduit = &b->conduit;
	return b;
}

/* Learns of an end without a conduit. Return: as conduit_ops.fill. */
static ssize_t peek(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK);

	if (n > 0)
		return -ENOMEM;
	return n < 0 ? -errno : 0;
}

/* Whether a read that came to @n would be taken for the side's last. */
static bool is_end_at(const struct side *from, ssize_t n)
{
	return n == 0 || error_is_end((int)-n) || (n == -EAGAIN && from->failed);
}

/*
 * A fill of a pipe came to @n, which may not be what it seems.
 *
 * Return: whether to ask again, with a buffer.
 */
static bool pipe_misleads(struct relay *r, unsigned i, ssize_t n)
{
	struct side *from = &r->side[i];

	if (is_end_at(from, n) && sock_at_mark(from->watch.fd)) {
		/* splice(2) stands at a mark that epoll has yet to tell of:
		 * this is no end, there are bytes behind it (K7). */
		side_urgent(r, from);
		if (n && n != -EAGAIN)
			side_gone(r, i, (int)-n);
		return true;
	}
	if (n == 0 || n == -EAGAIN || n == -EINTR || error_is_end((int)-n) ||
	    shortage_of_memory((int)-n))
		return false;
	lane_refused(r, i, FALLBACK_splice_in);
	return true;
}

static ssize_t lane_read(struct relay *r, unsigned i)
{
	struct side *from = &r->side[i];
	struct lane *l = &r->lane[i];
	struct conduit *c;

	if (!lane_borrow(r, i))
		return peek(from->watch.fd);
	c = l->conduit;
	if (c == l->own) /* it sees to marks by itself */
		return c->ops->fill(c, from->watch.fd);
	if (c->ops->is_pipe)
		watch_clear(&from->watch, WATCH_UNREAD);
	else if (!urgent_look(r, from))
		return -EAGAIN;
	if (from->urgent)
		return urgent_fill(r, i);
	return c->ops->fill(c, from->watch.fd);
}

static bool lane_may_read(const struct relay *r, unsigned i)
{
	return r->side[i].watch.ready & LOOP_READABLE || r->lane[i].ahead;
}

/* What a fill of @n bytes says of what is behind them. */
static void lane_short_read(struct relay *r, unsigned i, size_t n)
{
	struct side *from = &r->side[i];
	struct lane *l = &r->lane[i];
	const struct conduit *c = l->conduit;

	/* If an end or a mark is near, no edge follows (K32). */
	if (n >= c->size || from->failed || from->local ||
	    from->watch.ready & EPOLLPRI)
		return;
	if (from->watch.ready & LOOP_ENDING) {
		/* All that came before its FIN had come by then. */
		if (c->ops->short_is_empty && !from->gone && !from->short_write)
			lane_eof(r, i);
	} else if (c->ops->short_is_empty) {
		watch_clear(&from->watch, LOOP_READABLE);
	} else if (c->ops->is_pipe && n <= c->size / SHORT_PART &&
		   !(from->watch.ready & WATCH_RECHECKED)) {
		/* A slot has a byte or more. */
		l->more_expected =
			!recheck_add(&r->env->loop->recheck, &from->watch,
				     n < c->size / PIPE_SLOT);
	}
}

/* One read. */
static enum step lane_fill(struct relay *r, unsigned i)
{
	struct side *from = &r->side[i];
	struct lane *l = &r->lane[i];
	struct conduit *c;
	bool urgent;
	ssize_t n;

	if (!lane_may_read(r, i))
		return STEP_WAIT;
	urgent = from->urgent;
	n = lane_read(r, i);
	urgent |= from->urgent;
	c = l->conduit;
	if (n > 0) {
		probe(fill, r, i, c->ops->is_pipe, n);
		l->read += (uint64_t)n;
		if ((size_t)n >= min_size(c->size, BULK_FILL))
			r->env->loop->bulk = true;
		l->more_expected |= !!(from->watch.ready & WATCH_RECHECKED);
		if (r->env->mode == RELAY_AUTO && !urgent)
			choose_learn(r, l, (size_t)n);
		if (!urgent)
			lane_short_read(r, i, (size_t)n);
		return STEP_GO;
	}
	if (c && c->ops->is_pipe && pipe_misleads(r, i, n)) {
		lane_give(l);
		return STEP_GO;
	}
	if (n == 0) {
		lane_eof(r, i);
		return STEP_WAIT;
	}
	return lane_read_failed(r, i, (int)-n);
}

/* A write to the sink of lane @i was refused, though it is not gone. */
static enum step lane_spill(struct relay *r, unsigned i)
{
	int err = pipe_spill(to_pipe(r->lane[i].conduit), &r->env->bufs);

	if (err == -ENOMEM) {
		probe(no_memory, r, i);
		counter_add(&r->env->stats.no_memory, 1);
		r->starved = true;
		return STEP_WAIT;
	}
	if (err) {
		side_gone(r, !i, -err);
		return STEP_WAIT;
	}
	lane_refused(r, i, FALLBACK_splice_out);
	return STEP_GO;
}

static enum step lane_write_failed(struct relay *r, unsigned i, int err)
{
	struct side *to = &r->side[!i];
	struct conduit *c = r->lane[i].conduit;

	if (err == EINPROGRESS)
		return STEP_WAIT;
	if (err == EAGAIN) {
		watch_clear(&to->watch, LOOP_WRITABLE);
		to->short_write = false;
		probe(sink_full, r, i);
		counter_add(&r->env->stats.sink_full, 1);
		if (c && c->ops->is_pipe && !r->env->own_pipes)
			pipe_stalls(to_pipe(c));
		return STEP_WAIT;
	}
	if (err == EINTR)
		return STEP_GO;
	if (shortage_of_memory(err)) {
		probe(no_memory, r, i);
		counter_add(&r->env->stats.no_memory, 1);
		r->starved = true;
		return STEP_WAIT;
	}
	if (c && c->ops->is_pipe && !error_is_end(err))
		return lane_spill(r, i);
	if (err == EPIPE && !to->error && !side_fin_received(r, !i))
		err = ECONNRESET;
	side_gone(r, !i, err);
	return STEP_WAIT;
}

/* One write. */
static enum step lane_drain(struct relay *r, unsigned i)
{
	struct watch *to = &r->side[!i].watch;
	struct lane *l = &r->lane[i];
	struct conduit *c = l->conduit;
	bool pipe = c && c->ops->is_pipe;
	ssize_t n;

	if (!(to->ready & LOOP_WRITABLE))
		return STEP_WAIT;
	n = l->urgent ? urgent_drain(r, i) : c->ops->drain(c, to->fd);
	if (n < 0)
		return lane_write_failed(r, i, (int)-n);
	if (n == 0) /* the pipe is not what we think it is */
		return lane_write_failed(r, i, EIO);
	probe(drain, r, i, pipe, n);
	l->delivered += (uint64_t)n;
	if (pipe)
		l->by_pipe += (uint64_t)n;
	r->side[!i].short_write = pipe && c->held;
	return STEP_GO;
}

static ssize_t read_away(struct bufs *bufs, int fd)
{
	struct buf *b = buf_take(bufs);
	char small[512];
	ssize_t n = recv(fd, b ? b->data : (void *)small,
			 b ? b->conduit.size : sizeof(small), MSG_TRUNC);

	n = n < 0 ? -errno : n;
	if (b)
		buf_give(b);
	return n;
}

/* Reads what has nowhere to go any more, within a bound. */
static enum step lane_discard(struct relay *r, unsigned i)
{
	struct side *from = &r->side[i];
	struct lane *l = &r->lane[i];
	ssize_t n;

	if (!lane_may_read(r, i))
		return STEP_WAIT;
	if (l->own)
		n = r->env->engine->ops->discard(l);
	else
		n = read_away(&r->env->bufs, from->watch.fd);
	relay_call(&r->env->stats.discard, n > 0 ? (uint64_t)n : 0);
	if (n < 0)
		return lane_read_failed(r, i, (int)-n);
	if (n == 0) {
		lane_eof(r, i);
		return STEP_WAIT;
	}
	l->read += (uint64_t)n;
	if (l->read - l->delivered > r->env->discard_max)
		l->state = LANE_ENDED;
	return STEP_GO;
}

/* What a lane does when it holds nothing: rest, or pass the FIN on. */
static void lane_rest(struct relay *r, unsigned i)
{
	struct lane *l = &r->lane[i];
	int to = r->side[!i].watch.fd;

	if (l->conduit && !(r->env->own_pipes && l->conduit->ops->is_pipe))
		lane_give(l);
	if (l->state != LANE_DRAINING)
		return;
	if (r->lane[!i].state == LANE_SHUT) {
		/* Both have finished: the owner closes now, which says FIN. */
		l->state = LANE_SHUT;
		return;
	}
	if (shutdown(to, SHUT_WR) == 0) {
		l->state = LANE_SHUT;
		idle_start(r);
	} else { /* ENOTCONN is how shutdown(2) spells a RST */
		side_gone(r, !i, errno == ENOTCONN ? 0 : errno);
	}
}

/**
 * lane_run() - move what lane @i can move now, up to its budget
 *
 * Return: whether it stopped only because it has had its budget.
 */
bool lane_run(struct relay *r, unsigned i)
{
	struct lane *l = &r->lane[i];
	uint64_t budget = l->read + r->env->budget;
	enum step step = STEP_GO;
	bool full = false;

	while (step == STEP_GO && !full) {
		if (lane_held(l))
			step = lane_drain(r, i);
		else if (l->state != LANE_OPEN && l->state != LANE_DISCARD)
			step = STEP_WAIT;
		else if (l->read >= budget)
			full = true;
		else if (l->state == LANE_OPEN)
			step = lane_fill(r, i);
		else
			step = lane_discard(r, i);
	}
	if (!lane_held(l))
		lane_rest(r, i);
	return full && r->side[i].watch.ready & LOOP_READABLE;
}
