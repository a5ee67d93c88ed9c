/* SPDX-License-Identifier: MIT */
/*
 * pump.c - moves bytes whenever the sockets are ready
 *
 * DOC: Theory of operation
 *
 * A relay runs as a job, between batches: first one lane, then the other. A
 * lane that holds bytes drains; one that holds none fills; and so on, until a
 * socket says EAGAIN or the lane has read its share and goes to the back.
 *
 * A conduit is filled only when it is empty. So EAGAIN from a fill speaks of
 * the source alone, EAGAIN from a drain of the sink alone, and each takes away
 * the one readiness bit that it disproves. The next edge brings it back.
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
 *
 * Which error came first decides what 0 means on a side that is gone. A RST
 * after that peer's FIN is reported as EPIPE, otherwise as ECONNRESET, and only
 * once; if a write has eaten it, the reads end in 0 as after a FIN (K20).
 */
#include <sys/socket.h>

#include "base/util.h"
#include "net/sock.h"
#include "relay/errors.h"
#include "relay/relay.h"

/* The pause before memory is asked for again. */
#define STARVED_MS 10

/* The pauses between two looks at whether a peer has acknowledged all. */
#define UNSENT_FIRST_MS 1
#define UNSENT_MOST_MS	64

/* What one step of a lane came to. */
enum step {
	STEP_WAIT, /* nothing more to do before something happens */
	STEP_GO,   /* look again */
};

static struct relay *relay_of(struct side *s)
{
	return container_of(s - s->index, struct relay, side[0]);
}

static size_t lane_held(const struct lane *l)
{
	return (l->conduit ? l->conduit->held : 0) + l->urgent;
}

static void lane_give(struct lane *l)
{
	if (l->conduit)
		l->conduit->ops->give(l->conduit);
	l->conduit = NULL;
}

/* Throws away what the lane holds. */
static void lane_drop(struct relay *r, struct lane *l, enum tally_drop why)
{
	counter_add(&r->env->tally.dropped[why], lane_held(l));
	lane_give(l);
	l->urgent = false;
}

/* Notes that a connection is dead; @err is 0 if nothing has told how. */
static void side_gone(struct relay *r, unsigned i, int err)
{
	struct side *s = &r->side[i];
	struct lane *to_it = &r->lane[!i];

	if (!s->error)
		s->error = err;
	if (s->gone)
		return;
	s->gone = true;
	if (r->first_gone < 0)
		r->first_gone = (int8_t)i;
	if (!err || error_is_end(err))
		s->watch.ready |= LOOP_READABLE; /* for what came before */
	else if (r->lane[i].state == LANE_OPEN)
		r->lane[i].state = LANE_ENDED; /* our failure: no end will come */
	r->give_up_ns = now_ns() + r->env->linger_ms * NS_PER_MS;
	if (to_it->state == LANE_OPEN || to_it->state == LANE_DRAINING) {
		lane_drop(r, to_it, DROP_sink_gone);
		to_it->state =
			to_it->state == LANE_OPEN ? LANE_DISCARD : LANE_ENDED;
	}
}

/* From here to the mark, its lane reads with recv(2): see urgent.c. */
static void side_urgent(struct relay *r, struct side *s)
{
	if (!s->urgent && r->env->mode == RELAY_SPLICE)
		counter_add(&r->env->tally.fallbacks[FALLBACK_urgent], 1);
	s->urgent = true;
}

/* Acts on what an edge said of side @i beyond "readable" and "writable". */
static void side_look(struct relay *r, unsigned i)
{
	struct side *s = &r->side[i];
	uint32_t ready = s->watch.ready;

	if (ready & EPOLLPRI) {
		s->watch.ready &= ~(uint32_t)EPOLLPRI;
		side_urgent(r, s);
	}
	/* Both directions shut, and not by us: the error was told before. */
	if (ready & EPOLLERR ||
	    (ready & EPOLLHUP && r->lane[!i].state != LANE_SHUT))
		side_gone(r, i, 0);
}

/* The source said 0: its FIN, unless a write has eaten its RST before. */
static void lane_eof(struct relay *r, unsigned i)
{
	struct side *from = &r->side[i];
	struct lane *l = &r->lane[i];

	from->watch.ready &= ~(uint32_t)LOOP_READABLE;
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
		from->watch.ready &= ~(uint32_t)LOOP_READABLE;
		counter_add(&r->env->tally.source_empty, 1);
		return STEP_WAIT;
	}
	if (err == EINTR)
		return STEP_GO;
	if (error_is_shortage(err)) {
		counter_add(&r->env->tally.no_memory, 1);
		r->starved = true;
		return STEP_WAIT;
	}
	side_gone(r, i, err);
	r->lane[i].state = LANE_ENDED;
	return STEP_WAIT;
}

/* Goes on with a buffer where splice(2) is refused: nothing is lost. */
static void lane_refused(struct relay *r, struct lane *l, enum tally_fallback why)
{
	l->no_pipe = true;
	counter_add(&r->env->tally.fallbacks[why], 1);
}

/* Gets a conduit to fill. Return: whether there is one. */
static bool lane_borrow(struct relay *r, unsigned i)
{
	struct relay_env *env = r->env;
	struct lane *l = &r->lane[i];
	bool urgent = r->side[i].urgent;
	struct buf *b;
	int err;

	if (l->conduit && l->conduit->ops->is_pipe && urgent)
		lane_give(l); /* one of its own: --pipes=own */
	if (l->conduit)
		return true;
	if (env->mode == RELAY_SPLICE && !l->no_pipe && !urgent) {
		err = pipe_take(&env->pipes, &l->conduit);
		if (!err)
			return true;
		counter_add(&env->tally.fallbacks[-err], 1);
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

/* One read. */
static enum step lane_fill(struct relay *r, unsigned i)
{
	struct side *from = &r->side[i];
	struct lane *l = &r->lane[i];
	bool urgent = from->urgent;
	struct conduit *c;
	ssize_t n;

	if (!(from->watch.ready & LOOP_READABLE))
		return STEP_WAIT;
	if (!lane_borrow(r, i))
		n = peek(from->watch.fd);
	else if (urgent)
		n = urgent_fill(r, i);
	else
		n = l->conduit->ops->fill(l->conduit, from->watch.fd);

	c = l->conduit;
	if (n > 0) {
		l->read += (uint64_t)n;
		/* Not if an end or a mark is near: no edge follows (K32). */
		if (c->ops->short_is_empty && (size_t)n < c->size && !urgent &&
		    !(from->watch.ready & (LOOP_ENDING | EPOLLPRI)))
			from->watch.ready &= ~(uint32_t)LOOP_READABLE;
		return STEP_GO;
	}
	if (c && c->ops->is_pipe && (n == 0 || error_is_end((int)-n)) &&
	    sock_at_mark(from->watch.fd)) {
		/* splice(2) stands at a mark that epoll has yet to tell of:
		 * this is no end, there are bytes behind it (K7). */
		side_urgent(r, from);
		if (n)
			side_gone(r, i, (int)-n);
		lane_give(l);
		return STEP_GO;
	}
	if (n == 0) {
		lane_eof(r, i);
		return STEP_WAIT;
	}
	if (c && c->ops->is_pipe && n != -EAGAIN && n != -EINTR &&
	    !error_is_end((int)-n) && !error_is_shortage((int)-n)) {
		lane_refused(r, l, FALLBACK_splice_in);
		lane_give(l);
		return STEP_GO;
	}
	return lane_read_failed(r, i, (int)-n);
}

/* A write to the sink of lane @i was refused, though it is not gone. */
static enum step lane_spill(struct relay *r, unsigned i)
{
	struct lane *l = &r->lane[i];
	int err = pipe_spill(to_pipe(l->conduit), &r->env->bufs);

	if (err == -ENOMEM) {
		counter_add(&r->env->tally.no_memory, 1);
		r->starved = true;
		return STEP_WAIT;
	}
	if (err) {
		side_gone(r, !i, -err);
		return STEP_WAIT;
	}
	lane_refused(r, l, FALLBACK_splice_out);
	return STEP_GO;
}

static enum step lane_write_failed(struct relay *r, unsigned i, int err)
{
	struct conduit *c = r->lane[i].conduit;

	if (err == EAGAIN) {
		r->side[!i].watch.ready &= ~(uint32_t)LOOP_WRITABLE;
		counter_add(&r->env->tally.sink_full, 1);
		if (c && c->ops->is_pipe && !r->env->own_pipes)
			pipe_stalls(to_pipe(c));
		return STEP_WAIT;
	}
	if (err == EINTR)
		return STEP_GO;
	if (error_is_shortage(err)) {
		counter_add(&r->env->tally.no_memory, 1);
		r->starved = true;
		return STEP_WAIT;
	}
	if (c && c->ops->is_pipe && !error_is_end(err))
		return lane_spill(r, i);
	side_gone(r, !i, err);
	return STEP_WAIT;
}

/* One write. */
static enum step lane_drain(struct relay *r, unsigned i)
{
	struct watch *to = &r->side[!i].watch;
	struct lane *l = &r->lane[i];
	struct conduit *c = l->conduit;
	ssize_t n;

	if (!(to->ready & LOOP_WRITABLE))
		return STEP_WAIT;
	n = l->urgent ? urgent_drain(r, i) : c->ops->drain(c, to->fd);
	if (n < 0)
		return lane_write_failed(r, i, (int)-n);
	if (n == 0) /* the pipe is not what we think it is */
		return lane_write_failed(r, i, EIO);
	l->delivered += (uint64_t)n;
	if (c && c->ops->is_pipe)
		l->by_pipe += (uint64_t)n;
	return STEP_GO;
}

/* Reads what has nowhere to go any more, within a bound. */
static enum step lane_discard(struct relay *r, unsigned i)
{
	struct side *from = &r->side[i];
	struct lane *l = &r->lane[i];
	char small[512];
	struct buf *b;
	ssize_t n;

	if (!(from->watch.ready & LOOP_READABLE))
		return STEP_WAIT;
	b = buf_take(&r->env->bufs);
	n = recv(from->watch.fd, b ? b->data : (void *)small,
		 b ? b->conduit.size : sizeof(small), MSG_TRUNC);
	n = n < 0 ? -errno : n;
	if (b)
		buf_give(b);
	tally_call(&r->env->tally.discard, n > 0 ? (uint64_t)n : 0);
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
	if (shutdown(to, SHUT_WR) == 0)
		l->state = LANE_SHUT;
	else /* ENOTCONN is how shutdown(2) spells a RST */
		side_gone(r, !i, errno == ENOTCONN ? 0 : errno);
}

/* Return: whether it stopped only because it has had its share. */
static bool lane_run(struct relay *r, unsigned i)
{
	struct lane *l = &r->lane[i];
	uint64_t share = l->read + r->env->share;
	enum step step = STEP_GO;
	bool full = false;

	while (step == STEP_GO && !full) {
		if (lane_held(l))
			step = lane_drain(r, i);
		else if (l->state != LANE_OPEN && l->state != LANE_DISCARD)
			step = STEP_WAIT;
		else if (l->read >= share)
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

static void pump_timer(struct timer *t)
{
	struct relay *r = container_of(t, struct relay, timer);

	loop_soon(r->env->loop, &r->job);
}

/* Runs the relay again at @due_ns. */
static void pump_at(struct relay *r, uint64_t due_ns)
{
	/* Without memory for a deadline: ask all the time, it will pass. */
	if (loop_timer(r->env->loop, &r->timer, due_ns, pump_timer))
		loop_again(r->env->loop, &r->job);
}

/*
 * One side is gone. Return: whether the other has been told all that it said;
 * if not, this is asked again.
 */
static bool gone_is_told(struct relay *r, unsigned gone)
{
	struct lane *l = &r->lane[gone];
	uint64_t now = now_ns(), due = r->give_up_ns;
	bool passed = (l->state == LANE_SHUT || l->state == LANE_ENDED) &&
		      !lane_held(l);

	if (passed && sock_unsent(r->side[!gone].watch.fd) <= 0)
		return true;
	if (now >= r->give_up_ns) {
		r->stop = RELAY_LINGERED;
		return true;
	}
	if (passed) { /* an acknowledgement is announced by nothing */
		r->wait_ms = r->wait_ms ? 2 * r->wait_ms : UNSENT_FIRST_MS;
		if (r->wait_ms > UNSENT_MOST_MS)
			r->wait_ms = UNSENT_MOST_MS;
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

static void pump_end(struct relay *r)
{
	enum tally_drop why = r->stop == RELAY_STOPPED	  ? DROP_stopped
			      : r->stop == RELAY_LINGERED ? DROP_source_reset
							  : DROP_sink_gone;

	loop_untimer(r->env->loop, &r->timer);
	lane_drop(r, &r->lane[0], why);
	lane_drop(r, &r->lane[1], why);
	r->done(r);
}

/* The relay's job. */
void pump_run(struct job *j)
{
	struct relay *r = container_of(j, struct relay, job);
	int gone;
	bool more;

	r->starved = false;
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
		pump_at(r, now_ns() + STARVED_MS * NS_PER_MS);
}

/* The callback of both watches. */
void pump_ready(struct watch *w)
{
	struct relay *r = relay_of(container_of(w, struct side, watch));

	loop_soon(r->env->loop, &r->job);
}
