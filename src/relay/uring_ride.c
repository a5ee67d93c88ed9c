/* SPDX-License-Identifier: MIT */
/*
 * uring_ride.c - the lanes that are on a ring: see uring.c
 */
#include <assert.h>
#include <stdlib.h>

#include "base/probe.h"
#include "base/shortage.h"
#include "base/util.h"
#include "relay/errors.h"
#include "relay/lane.h"
#include "relay/uring_ring.h"

/* Received buffers that wait for a sink before the source is stopped. */
#define AHEAD 4

static struct ride *to_ride(struct conduit *c)
{
	return container_of(c, struct ride, conduit);
}

static uint64_t name_of(const struct ride *w, enum op op)
{
	return (uint64_t)w->gen << 32 | (uint64_t)w->at << 2 | op;
}

/* Return: the ride that a completion is for, NULL if it has ended. */
static struct ride *find(const struct uring *u, uint64_t name)
{
	uint32_t at = (uint32_t)name >> 2;
	struct ride *w = at < u->n_rides ? u->rides[at] : NULL;

	return w && w->gen == name >> 32 && w->relay ? w : NULL;
}

static void no_memory(const struct ride *w)
{
	probe(no_memory, w->relay, w->index);
	counter_add(&w->relay->env->tally.no_memory, 1);
}

/* The kernel has no memory for the first request of the queue. */
void ride_refused(struct uring *u, uint64_t name)
{
	const struct ride *w = find(u, name);

	if (w)
		no_memory(w);
	else
		counter_add(&u->env->tally.no_memory, 1);
}

/* Asks for it, if there is a buffer to receive into. Return: 0 or -ENOBUFS. */
static int receive_sqe(struct ride *w, enum op op)
{
	struct io_uring_sqe *sqe =
		uring_restock(w->uring) ? uring_sqe(w->uring) : NULL;
	int fd = w->relay->side[w->index].watch.fd;

	if (!sqe)
		return -ENOBUFS;
	if (op == OP_WAIT)
		io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
	else
		io_uring_prep_recv(sqe, fd, NULL, 0, MSG_DONTWAIT);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = 0;
	io_uring_sqe_set_data64(sqe, name_of(w, op));
	w->taken = w->uring->taken;
	return 0;
}

/* Asks for what the source will have; if it cannot, an edge tells of that. */
static void wait_for_more(struct ride *w)
{
	w->waiting = !receive_sqe(w, OP_WAIT);
}

/* The source has no more. An edge that tells of more comes after this: so it is
 * noted now, not when the lane runs. */
static void drained(struct ride *w)
{
	struct watch *from = &w->relay->side[w->index].watch;

	watch_clear(from, LOOP_READABLE);
	if (w->uring->multishot && !w->leaving)
		wait_for_more(w);
}

/*
 * Asks for what the source has.
 *
 * Return: -EINPROGRESS; -EAGAIN if it has nothing; -EINTR if something urgent is
 *	to be read first; or -ENOBUFS.
 */
static int receive(struct ride *w)
{
	struct side *from = &w->relay->side[w->index];
	int err;

	if (w->receiving || w->waiting)
		return -EINPROGRESS;
	if (!urgent_look(w->relay, from)) {
		drained(w);
		return -EAGAIN;
	}
	if (from->urgent) /* it leaves the ring */
		return -EINTR;
	err = receive_sqe(w, OP_RECV);
	if (err)
		return err;
	w->receiving = true;
	return -EINPROGRESS;
}

/* A receive could not be stopped: the relay asks again in a while. */
static void not_stopped(struct ride *w)
{
	no_memory(w);
	pump_starved(w->relay);
}

/* Has that end: a completion tells when it has. */
static void stop_waiting(struct ride *w)
{
	struct io_uring_sqe *sqe;

	if (!w->waiting || w->canceling)
		return;
	sqe = uring_sqe(w->uring);
	if (!sqe) {
		not_stopped(w);
		return;
	}
	io_uring_prep_cancel64(sqe, name_of(w, OP_WAIT), 0);
	io_uring_sqe_set_data64(sqe, name_of(w, OP_CANCEL));
	w->canceling = true;
}

static void push(struct ride *w, struct buf *b)
{
	list_append(&w->queue, &b->node);
	w->n_ahead++;
	w->ahead += b->conduit.held;
}

static struct buf *pop(struct ride *w)
{
	struct buf *b;

	if (list_empty(&w->queue))
		return NULL;
	b = container_of(w->queue.next, struct buf, node);
	list_remove(&b->node);
	w->n_ahead--;
	w->ahead -= b->conduit.held;
	return b;
}

/* Whether a receive that filled no buffer has emptied the source: not if an end
 * or a mark is near, since no edge follows (K32). */
static bool short_is_empty(const struct ride *w)
{
	const struct side *from = &w->relay->side[w->index];

	return !w->full && !from->urgent && !from->failed &&
	       !(from->watch.ready & (LOOP_ENDING | EPOLLPRI));
}

/* Runs the relay for what has come of it: in its turn, if it has had its share
 * and there is more. */
static void run(struct ride *w)
{
	struct relay *r = w->relay;
	uint64_t read = r->lane[w->index].read;

	if (!w->full || read < w->share_end) {
		loop_soon(r->env->loop, &r->job);
		return;
	}
	w->share_end = read + r->env->share;
	loop_again(r->env->loop, &r->job);
}

/* Whether a receive found no buffer since others have taken what was in stock:
 * then it is asked for again, now. */
static bool came_too_late(const struct ride *w, int n)
{
	return n == -ENOBUFS && w->taken != w->uring->taken;
}

/* A receive of @n bytes into @b, or an end, or a failure. */
static void received(struct ride *w, int n, struct buf *b)
{
	struct relay *r = w->relay;

	w->receiving = false;
	w->full = b && b->conduit.held == b->conduit.size;
	if (b)
		push(w, b);
	else if (n != -EAGAIN && !came_too_late(w, n))
		w->end = n;
	if (n == -EAGAIN) {
		probe(source_empty, r, w->index);
		counter_add(&r->env->tally.source_empty, 1);
	}
	if (n == -EAGAIN || (b && short_is_empty(w)))
		drained(w);
	run(w);
}

/* What a multishot receive came to that brought no bytes, or NO_END. Without
 * memory to wait the kernel cancels it by itself. */
static int end_of_wait(const struct ride *w, int n, bool canceled)
{
	if (n == -EAGAIN || n == -ECANCELED)
		return canceled ? NO_END : -ENOMEM;
	return came_too_late(w, n) ? NO_END : n;
}

/* The same of a multishot receive; @more: it goes on. */
static void waited(struct ride *w, int n, struct buf *b, bool more)
{
	struct relay *r = w->relay;
	bool canceled = w->canceling;

	if (!more)
		w->waiting = w->canceling = false;
	if (b)
		push(w, b);
	else
		w->end = end_of_wait(w, n, canceled);
	if (w->n_ahead >= AHEAD || (b && b->conduit.held == b->conduit.size))
		stop_waiting(w);
	watch_set(&r->side[w->index].watch, LOOP_READABLE);
	run(w);
}

/* A send of @n bytes, or a failure. A sink that is full says so by an edge that
 * comes after this: so it is noted now, not when the lane runs. */
static void sent(struct ride *w, int n)
{
	struct relay *r = w->relay;
	struct watch *to = &r->side[!w->index].watch;
	struct tally *t = &r->env->tally;

	w->sending = false;
	tally_call(&t->send, n > 0 ? (uint64_t)n : 0);
	if (n == -EAGAIN) {
		watch_clear(to, LOOP_WRITABLE);
		probe(sink_full, r, w->index);
		counter_add(&t->sink_full, 1);
		return;
	}
	w->sent = n ? n : -EIO;
	watch_set(to, LOOP_WRITABLE);
	run(w);
}

/* Whether there was anything to cancel, is all the same; not if the kernel had no
 * memory to look. */
static void canceled(struct ride *w, int err)
{
	if (!w->canceling || !(shortage_of_memory(-err) || err == -EAGAIN))
		return;
	w->canceling = false;
	not_stopped(w);
}

/* What has become of a request; @b is what it received, NULL if nothing. */
void ride_complete(struct uring *u, const struct io_uring_cqe *cqe, struct buf *b)
{
	struct ride *w = find(u, cqe->user_data);

	if (!w) {
		if (b)
			buf_give(b);
		return;
	}
	switch ((enum op)(cqe->user_data & 3)) {
	case OP_RECV:
		received(w, cqe->res, b);
		break;
	case OP_WAIT:
		waited(w, cqe->res, b, cqe->flags & IORING_CQE_F_MORE);
		break;
	case OP_SEND:
		sent(w, cqe->res);
		break;
	case OP_CANCEL:
		canceled(w, cqe->res);
		break;
	}
}

static ssize_t ride_fill(struct conduit *c, int fd)
{
	struct ride *w = to_ride(c);
	int err = w->end;

	w->now = pop(w);
	if (w->now) {
		c->held = w->now->conduit.held;
		tally_call(&c->tally->recv, c->held);
		if (w->full && !w->n_ahead && w->end == NO_END && !w->leaving)
			(void)receive(w); /* with the send of this one */
		return (ssize_t)c->held;
	}
	if (w->end != NO_END) {
		w->end = NO_END;
		return err;
	}
	if (w->leaving)
		return -EINPROGRESS;
	return receive(w);
}

/* Takes away what has been sent of @now. */
static void advance(struct ride *w, size_t n)
{
	w->sent = 0;
	w->now->head += n;
	w->conduit.held -= n;
	if (!w->conduit.held) {
		buf_give(w->now);
		w->now = NULL;
	}
}

static ssize_t ride_drain(struct conduit *c, int fd)
{
	struct ride *w = to_ride(c);
	struct io_uring_sqe *sqe;
	int n = w->sent;

	w->sent = 0;
	if (n > 0)
		advance(w, (size_t)n);
	if (n)
		return n;
	if (w->sending)
		return -EINPROGRESS;
	sqe = uring_sqe(w->uring);
	if (!sqe)
		return -ENOBUFS;
	io_uring_prep_send(sqe, fd, w->now->data + w->now->head, c->held,
			   MSG_NOSIGNAL | MSG_DONTWAIT);
	io_uring_sqe_set_data64(sqe, name_of(w, OP_SEND));
	w->sending = true;
	return -EINPROGRESS;
}

/* What the ring has received and the lane has not read stays. */
static void ride_give(struct conduit *c)
{
	struct ride *w = to_ride(c);

	assert(!w->sending);
	if (w->now)
		buf_give(w->now);
	w->now = NULL;
	c->held = 0;
}

static const struct conduit_ops ride_ops = {
	.fill = ride_fill,
	.drain = ride_drain,
	.give = ride_give,
};

/* Whether the kernel, or a ride, still has something of it. */
static bool is_empty(const struct ride *w)
{
	return !w->receiving && !w->waiting && !w->sending && !w->n_ahead &&
	       !w->now && w->end == NO_END;
}

static struct ride *ride_new(struct uring *u)
{
	struct ride *w = u->unused, **more;

	if (w) {
		u->unused = w->next;
		return w;
	}
	if (u->n_rides == u->room) {
		unsigned room = u->room ? 2 * u->room : 64;

		more = realloc(u->rides, room * sizeof(struct ride *));
		if (!more)
			return NULL;
		u->rides = more;
		u->room = room;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->at = u->n_rides;
	u->rides[u->n_rides++] = w;
	return w;
}

/* Takes a lane off the ring for good. */
static void ride_end(struct lane *l)
{
	struct ride *w = l->ride;

	if (l->conduit == &w->conduit)
		l->conduit = NULL;
	l->ride = NULL;
	w->relay = NULL;
	w->gen++;
	w->next = w->uring->unused;
	w->uring->unused = w;
}

/* Puts the lanes of a relay on the ring, if there is one and memory for it. */
void uring_start(struct relay *r)
{
	struct uring *u = r->env->uring;

	for (uint8_t i = 0; u && i < 2; i++) {
		struct ride *w = ride_new(u);

		if (!w) {
			probe(no_memory, r, i);
			counter_add(&r->env->tally.no_memory, 1);
			return;
		}
		*w = (struct ride){
			.conduit = { .ops = &ride_ops,
				     .size = r->env->bufs.size,
				     .tally = &r->env->tally },
			.uring = u,
			.relay = r,
			.at = w->at,
			.gen = w->gen,
			.index = i,
			.share_end = r->env->share,
			.end = NO_END,
		};
		list_init(&w->queue);
		r->lane[i].ride = w;
	}
}

/* The conduit of a lane on the ring. */
struct conduit *uring_conduit(struct lane *l)
{
	return &l->ride->conduit;
}

/* Bytes that were received for a lane and that it has not read. */
size_t uring_ahead(const struct lane *l)
{
	return l->ride ? l->ride->ahead : 0;
}

/* Whether a write has failed for good, and the lane has yet to learn it. */
bool uring_has_failed(const struct lane *l)
{
	return l->ride && l->ride->sent < 0 &&
	       !shortage_of_memory(-l->ride->sent);
}

/**
 * uring_leave() - have a lane leave the ring
 *
 * It reads and drains what was received first, and is run when there is more of
 * that, so this is to be asked again.
 *
 * Return: whether it has left.
 */
bool uring_leave(struct lane *l)
{
	struct ride *w = l->ride;

	w->leaving = true;
	stop_waiting(w);
	if (!is_empty(w))
		return false;
	ride_end(l);
	return true;
}

/* Takes a request back that the kernel has yet to take. Return: whether it was
 * there. */
static bool take_back(struct ride *w, enum op op)
{
	struct io_uring_sqe *sqe = uring_queued(w->uring, name_of(w, op));

	if (!sqe)
		return false;
	io_uring_prep_nop(sqe);
	io_uring_sqe_set_data64(sqe, name_of(w, OP_CANCEL));
	return true;
}

/* Has no write of a lane be in flight, before what it holds is thrown away. */
void uring_settle(struct lane *l)
{
	struct ride *w = l->ride;

	if (!w)
		return;
	while (w->sending)
		if (!uring_push(w->uring))
			w->sending = !take_back(w, OP_SEND);
	if (w->sent <= 0)
		return;
	probe(drain, w->relay, w->index, false, w->sent);
	l->delivered += (uint64_t)w->sent;
	advance(w, (size_t)w->sent);
}

/* Throws away what was received. Return: as conduit_ops.fill. */
ssize_t uring_discard(struct lane *l)
{
	struct ride *w = l->ride;
	struct buf *b = pop(w);
	ssize_t n = b ? (ssize_t)b->conduit.held : -EINPROGRESS;

	if (b)
		buf_give(b);
	else if (w->end != NO_END)
		n = w->end;
	if (!b)
		w->end = NO_END;
	return n;
}

/* Of what was received and never read: counted as read, and lost. */
static void drop_ahead(struct relay *r, struct lane *l, enum tally_drop why)
{
	struct ride *w = l->ride;

	for (struct buf *b = pop(w); b; b = pop(w)) {
		probe(fill, r, w->index, false, b->conduit.held);
		tally_call(&r->env->tally.recv, b->conduit.held);
		counter_add(&r->env->tally.dropped[why], b->conduit.held);
		l->read += b->conduit.held;
		buf_give(b);
	}
}

/* An end does not wait for what the kernel has no memory to take. */
static void forget_queued(struct ride *w)
{
	w->receiving = w->receiving && !take_back(w, OP_RECV);
	w->waiting = w->waiting && !take_back(w, OP_WAIT);
}

/**
 * uring_end() - have nothing of a relay be in flight
 *
 * Its lanes have thrown away what they held.
 *
 * Return: whether that is so; if not, the relay is run when it may be.
 */
bool uring_end(struct relay *r, enum tally_drop why)
{
	bool over = true;

	for (int i = 0; i < 2; i++) {
		struct lane *l = &r->lane[i];
		struct ride *w = l->ride;

		if (!w)
			continue;
		w->leaving = true;
		forget_queued(w);
		stop_waiting(w);
		if (w->receiving || w->waiting) {
			over = false;
			continue;
		}
		drop_ahead(r, l, why);
		ride_end(l);
	}
	return over;
}
