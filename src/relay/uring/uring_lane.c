/* SPDX-License-Identifier: MIT */
/*
 * lane.c - the lanes that are on a ring: see ring.c
 *
 * What is not ordinary makes a lane leave the ring, for good: urgent data, a
 * source that has failed, bytes that have nowhere to go. It reads what was received
 * first.
 */
#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/probe.h"
#include "base/shortage.h"
#include "base/util.h"
#include "relay/lane.h"
#include "relay/uring/uring.h"

static struct uring_lane *to_uring(struct conduit *c)
{
	return container_of(c, struct uring_lane, conduit);
}

static struct side *source(const struct uring_lane *w)
{
	return &w->relay->side[w->index];
}

static struct lane *lane(const struct uring_lane *w)
{
	return &w->relay->lane[w->index];
}

void uring_no_memory(const struct uring_lane *w)
{
	probe(no_memory, w->relay, w->index);
	counter_add(&w->relay->env->stats.no_memory, 1);
}

static void uring_lane_end(struct uring_lane *w)
{
	struct lane *l = lane(w);

	if (l->conduit == l->own)
		l->conduit = NULL;
	l->own = NULL;
	free(w);
}

/*
 * Requests what the source has.
 *
 * Return: -EINPROGRESS; -EAGAIN if it has nothing; -EINTR if something urgent is
 *	to be read first; or -ENOBUFS.
 */
static int receive(struct uring_lane *w)
{
	struct side *from = source(w);
	struct io_uring_sqe *sqe;

	if (!urgent_look(w->relay, from)) {
		watch_clear(&from->watch, LOOP_READABLE);
		return -EAGAIN;
	}
	if (from->urgent) /* it leaves the ring */
		return -EINTR;
	sqe = buf_ring_fill(w->uring) ? uring_sqe(w, OP_RECV) : NULL;
	if (!sqe)
		return -ENOBUFS;
	io_uring_prep_recv(sqe, from->watch.fd, NULL, 0, MSG_DONTWAIT);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	w->taken = w->uring->buf_ring.taken;
	w->receiving = true;
	return -EINPROGRESS;
}

/* Whether a receive of @n bytes, or with that error, has emptied the source: a
 * short one not if an end or a mark is near, since no edge follows (K32). Of one
 * that has failed the pump reads the rest. */
static bool is_empty(const struct uring_lane *w, int n)
{
	const struct side *from = source(w);

	if (from->failed || n == -EAGAIN)
		return !from->failed;
	return n > 0 && !w->full && !from->urgent &&
	       !(from->watch.ready & (LOOP_ENDING | EPOLLPRI));
}

/* Runs the relay for what has come of it: in its turn, if it has had its budget
 * and there is more. */
static void run(struct uring_lane *w)
{
	struct relay *r = w->relay;
	uint64_t read = lane(w)->read;

	if (!w->full || read < w->budget_end) {
		loop_soon(r->env->loop, &r->job);
		return;
	}
	w->budget_end = read + r->env->budget;
	loop_again(r->env->loop, &r->job);
}

/* Whether a receive found no buffer since others have taken them: then there are
 * new ones now. */
static bool came_too_late(const struct uring_lane *w, int n)
{
	return n == -ENOBUFS && w->taken != w->uring->buf_ring.taken;
}

/* A receive of @n bytes into @b, or an end, or a failure. */
void uring_received(struct uring_lane *w, int n, struct buf *b)
{
	struct relay *r = w->relay;

	w->receiving = false;
	w->full = b && b->conduit.held == b->conduit.size;
	w->next = b;
	lane(w)->ahead = b ? b->conduit.held : 0;
	if (n == -EAGAIN) {
		probe(source_empty, r, w->index);
		counter_add(&r->env->stats.source_empty, 1);
	} else if (!b && !came_too_late(w, n)) {
		w->end = n;
	}
	if (is_empty(w, n))
		watch_clear(&source(w)->watch, LOOP_READABLE);
	run(w);
}

/* A send of @n bytes, or a failure. */
void uring_sent(struct uring_lane *w, int n)
{
	struct relay *r = w->relay;
	struct watch *to = &r->side[!w->index].watch;
	struct relay_stats *t = &r->env->stats;

	w->sending = false;
	relay_call(&t->send, n > 0 ? (uint64_t)n : 0);
	if (n == -EAGAIN) {
		watch_clear(to, LOOP_WRITABLE);
		probe(sink_full, r, w->index);
		counter_add(&t->sink_full, 1);
		return;
	}
	w->sent = n ? n : -EIO;
	lane(w)->write_failed = w->sent < 0 && !shortage_of_memory(-w->sent);
	watch_set(to, LOOP_WRITABLE);
	run(w);
}

/* Takes what was received, if it was. */
static struct buf *take_next(struct uring_lane *w)
{
	struct buf *b = w->next;

	w->next = NULL;
	lane(w)->ahead = 0;
	return b;
}

/* What a read came to that has nothing to take. Return: as conduit_ops.fill; 1 if
 * the ring has nothing of the lane. */
static int nothing_next(struct uring_lane *w)
{
	int end = w->end;

	w->end = NO_END;
	return w->receiving ? -EINPROGRESS : end;
}

static ssize_t uring_fill(struct conduit *c, int fd)
{
	struct uring_lane *w = to_uring(c);
	bool leaves = source(w)->urgent || source(w)->failed;
	int n;

	w->now = take_next(w);
	if (w->now) {
		c->held = w->now->conduit.held;
		relay_call(&c->stats->recv, c->held);
		if (w->full && !leaves)
			(void)receive(w); /* with the send of this one */
		return (ssize_t)c->held;
	}
	n = nothing_next(w);
	if (n != NO_END)
		return n;
	if (!leaves)
		return receive(w);
	uring_lane_end(w);
	return -EINTR; /* the pump goes on with it */
}

/* Return: as engine_ops.discard. */
ssize_t uring_discard(struct lane *l)
{
	struct uring_lane *w = to_uring(l->own);
	struct buf *b = take_next(w);
	ssize_t n = b ? (ssize_t)b->conduit.held : nothing_next(w);

	if (b) {
		buf_give(b);
	} else if (n == NO_END) {
		uring_lane_end(w);
		n = -EINTR;
	}
	return n;
}

/* Learns of what has been sent of @now. Return: as conduit_ops.drain; 0 none. */
static int learn_sent(struct uring_lane *w)
{
	int n = w->sent;

	w->sent = 0;
	lane(w)->write_failed = false;
	if (n <= 0)
		return n;
	w->now->head += (size_t)n;
	w->conduit.held -= (size_t)n;
	if (!w->conduit.held) {
		buf_give(w->now);
		w->now = NULL;
	}
	return n;
}

static ssize_t uring_drain(struct conduit *c, int fd)
{
	struct uring_lane *w = to_uring(c);
	struct io_uring_sqe *sqe;
	int n = learn_sent(w);

	if (n)
		return n;
	if (w->sending)
		return -EINPROGRESS;
	sqe = uring_sqe(w, OP_SEND);
	if (!sqe)
		return -ENOBUFS;
	io_uring_prep_send(sqe, fd, w->now->data + w->now->head, c->held,
			   MSG_NOSIGNAL | MSG_DONTWAIT);
	w->sending = true;
	return -EINPROGRESS;
}

/* What the ring has received and the lane has not read stays. */
static void uring_give(struct conduit *c)
{
	struct uring_lane *w = to_uring(c);

	assert(!w->sending);
	if (w->now)
		buf_give(w->now);
	w->now = NULL;
	c->held = 0;
}

static const struct conduit_ops uring_conduit_ops = {
	.fill = uring_fill,
	.drain = uring_drain,
	.give = uring_give,
};

void uring_start(struct relay *r)
{
	for (uint8_t i = 0; i < 2; i++) {
		struct uring_lane *w = calloc(1, sizeof(*w));

		if (!w) {
			probe(no_memory, r, i);
			counter_add(&r->env->stats.no_memory, 1);
			return;
		}
		*w = (struct uring_lane){
			.conduit = { .ops = &uring_conduit_ops,
				     .size = r->env->bufs.size,
				     .stats = &r->env->stats },
			.uring = container_of(r->env->engine, struct uring,
					      engine),
			.relay = r,
			.index = i,
			.budget_end = r->env->budget,
			.end = NO_END,
		};
		r->lane[i].own = &w->conduit;
	}
}

void uring_settle(struct lane *l)
{
	struct uring_lane *w = to_uring(l->own);
	int n;

	uring_cancel(w, OP_SEND);
	n = learn_sent(w);
	if (n <= 0)
		return;
	probe(drain, w->relay, w->index, false, n);
	l->delivered += (uint64_t)n;
}

/* Of what was received and never read: counted as read, and lost. */
static void drop_next(struct uring_lane *w, enum relay_drop why)
{
	struct relay_stats *t = &w->relay->env->stats;
	struct buf *b = take_next(w);

	if (!b)
		return;
	probe(fill, w->relay, w->index, false, b->conduit.held);
	relay_call(&t->recv, b->conduit.held);
	counter_add(&t->dropped[why], b->conduit.held);
	lane(w)->read += b->conduit.held;
	buf_give(b);
}

void uring_stop(struct relay *r, enum relay_drop why)
{
	for (int i = 0; i < 2; i++) {
		struct conduit *own = r->lane[i].own;
		struct uring_lane *w = to_uring(own);

		if (!own)
			continue;
		uring_cancel(w, OP_RECV);
		drop_next(w, why);
		uring_lane_end(w);
	}
}
