/* SPDX-License-Identifier: MIT */
/*
 * uring.c - the completion engine: io_uring receives and sends for the lanes
 *
 * DOC: Theory of operation
 *
 * To the pump a lane on the ring is one whose conduit is its ride: a fill takes
 * what the ring has received, a drain asks the ring to send it, and either says
 * "in progress" until a completion has run the relay again. So lane.c decides on
 * ends as ever, and epoll goes on telling of them, and of urgent data.
 *
 * One ring a worker, beside the pump. loop.flush enters the kernel before the
 * jobs of a turn, when the ring has something to do, and behind them, when they
 * have asked for something: two calls for all lanes that have become ready,
 * instead of two for each. One watch in the loop tells when the ring has something
 * to do: an eventfd registered with it, since the ring's own descriptor does not
 * wake epoll for work that is deferred. It is edge triggered, so nobody reads it,
 * and switched off inside the call, which would ring it for what it returns.
 *
 * With DEFER_TASKRUN the kernel receives nothing but inside such a call. That is
 * what keeps urgent data in its place: a receive that begins at the mark takes
 * the urgent byte for an ordinary one, and tells nobody. The edge that tells of
 * it is in the batch before the call, so the receive is canceled in time; but
 * for urgent data that comes in between the two. The same flag makes the
 * ring one thread's: the first that enters it.
 *
 * Receives take their memory from the ring's stock, STOCK buffers, a new one for
 * each that a lane has got. As long as a peer says less than a buffer at a time,
 * its receive goes on by itself (multishot). One that has filled a buffer is bulk:
 * its next receives take one each, and the next is asked for with the send
 * of the one before; and if AHEAD wait for the sink, none is asked for. So a sink
 * that stalls stops its source, and holds two buffers, or what one call took
 * before it was bulk, STOCK + AHEAD at the very most.
 *
 * A send does not wait (MSG_DONTWAIT): it is over when the call that submits it
 * returns, what it could not take waits for the sink's next edge, and there is
 * nothing to cancel. There is one a lane, so that they stay in order.
 *
 * A completion names its ride by place and generation, never by pointer; a place
 * is used again, with the next generation, when nothing of it is in flight. The
 * relay is not done before that: a request holds its socket open.
 */
#include <assert.h>
#include <liburing.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "relay/uring.h"

#include "base/util.h"
#include "relay/errors.h"
#include "relay/lane.h"

#define ENTRIES	    256
#define COMPLETIONS 4096

/* Buffers that wait in the ring to be received into: a power of two. */
#define STOCK 64

/* Received buffers that wait for a sink before the source is stopped. */
#define AHEAD 4

enum op { OP_RECV, OP_SEND, OP_CANCEL };

/* No end was received. */
#define NO_END 1

/**
 * struct ride - a lane on the ring
 * @conduit:	what the lane holds of it: @now
 * @relay, @index: whose lane, and which
 * @at, @gen:	its name in completions
 * @receiving:	a receive is in flight; @canceling: and was told to end
 * @leaving:	no more receives
 * @bulk:	the last receive filled its buffer
 * @first, @last: received and not yet read by the lane, @n_ahead buffers with
 *		@ahead bytes; behind them comes @end, 0 or a negative errno, if
 *		it is not NO_END
 * @now:	the buffer that the lane drains
 * @sending:	some of it is in flight
 * @sent:	what the last send came to, until the lane has learned it; 0 none
 * @next:	while nobody rides
 */
struct ride {
	struct conduit conduit;
	struct uring *uring;
	struct relay *relay;
	uint32_t at, gen;
	uint8_t index;
	bool receiving, canceling, leaving, bulk, sending;
	unsigned n_ahead;
	size_t ahead;
	struct buf *first, *last, *now;
	int end, sent;
	struct ride *next;
};

/**
 * struct uring - one thread's ring
 * @bell:	watches the eventfd; @flush: the loop's
 * @enabled:	a thread has entered it, whose it is
 * @provided:	the kernel's ring of buffers to receive into; @stock: which they
 *		are, by their number there; @empty: numbers without, @n_empty
 * @rides:	all, by their place; @n_rides, and room for @room
 * @unused:	those without a lane
 */
struct uring {
	struct io_uring ring;
	struct relay_env *env;
	struct watch bell;
	struct job flush;
	bool enabled;
	struct io_uring_buf_ring *provided;
	struct buf *stock[STOCK];
	uint16_t empty[STOCK];
	unsigned n_empty;
	struct ride **rides, *unused;
	unsigned n_rides, room;
};

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

/*
 * What is submitted is refused for want of memory for it alone, so that is
 * asked again until there is some: it is a few hundred bytes.
 */
static struct io_uring_sqe *get_sqe(struct uring *u)
{
	struct io_uring_sqe *sqe;

	if (!u->enabled) { /* liburing 2.3 does not export its own call */
		int err = io_uring_register((unsigned)u->ring.ring_fd,
					    IORING_REGISTER_ENABLE_RINGS, NULL,
					    0);

		assert(!err);
		(void)err;
		u->enabled = true;
	}
	while (!(sqe = io_uring_get_sqe(&u->ring)))
		(void)io_uring_submit(&u->ring);
	u->env->loop->flush_due = true;
	return sqe;
}

/* Fills the stock up. Return: whether there is anything in it. */
static bool restock(struct uring *u)
{
	int n = 0;

	while (u->n_empty) {
		struct buf *b = buf_stock(&u->env->bufs);
		uint16_t at = u->empty[u->n_empty - 1];

		if (!b)
			break;
		u->n_empty--;
		u->stock[at] = b;
		io_uring_buf_ring_add(u->provided, b->data,
				      (unsigned)b->conduit.size, at,
				      io_uring_buf_ring_mask(STOCK), n++);
	}
	if (n)
		io_uring_buf_ring_advance(u->provided, n);
	return u->n_empty < STOCK;
}

/* Takes the buffer that a receive of @n bytes has used. */
static struct buf *unstock(struct uring *u, unsigned at, size_t n)
{
	struct buf *b = u->stock[at];

	u->stock[at] = NULL;
	u->empty[u->n_empty++] = (uint16_t)at;
	buf_lend(b);
	b->head = 0;
	b->conduit.held = n;
	return b;
}

/* Asks for more of the source. Return: 0, or -ENOBUFS. */
static int receive(struct ride *w)
{
	struct uring *u = w->uring;
	int fd = w->relay->side[w->index].watch.fd;
	struct io_uring_sqe *sqe;

	if (w->receiving)
		return 0;
	if (!restock(u))
		return -ENOBUFS;
	sqe = get_sqe(u);
	if (w->bulk)
		io_uring_prep_recv(sqe, fd, NULL, 0, 0);
	else
		io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = 0;
	io_uring_sqe_set_data64(sqe, name_of(w, OP_RECV));
	w->receiving = true;
	return 0;
}

/* Has a receive end: a completion tells when it has. */
static void stop_receiving(struct ride *w)
{
	struct io_uring_sqe *sqe;

	if (!w->receiving || w->canceling)
		return;
	sqe = get_sqe(w->uring);
	io_uring_prep_cancel64(sqe, name_of(w, OP_RECV), 0);
	io_uring_sqe_set_data64(sqe, name_of(w, OP_CANCEL));
	w->canceling = true;
}

static void push(struct ride *w, struct buf *b)
{
	b->next = NULL;
	if (w->first)
		w->last->next = b;
	else
		w->first = b;
	w->last = b;
	w->n_ahead++;
	w->ahead += b->conduit.held;
}

static struct buf *pop(struct ride *w)
{
	struct buf *b = w->first;

	if (!b)
		return NULL;
	w->first = b->next;
	w->n_ahead--;
	w->ahead -= b->conduit.held;
	return b;
}

/* A receive of @n bytes, or an end, or a failure. */
static void received(struct ride *w, int n, struct buf *b, bool more)
{
	struct relay *r = w->relay;

	if (!more)
		w->receiving = w->canceling = false;
	if (b) {
		bool full = b->conduit.held == b->conduit.size;

		push(w, b);
		if (w->n_ahead >= AHEAD || (full && !w->bulk))
			stop_receiving(w);
		w->bulk = full;
	} else if (n != -ECANCELED && n != -ENOBUFS) {
		w->end = n;
	}
	r->side[w->index].watch.ready |= LOOP_READABLE;
	loop_soon(r->env->loop, &r->job);
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
		to->ready &= ~(uint32_t)LOOP_WRITABLE;
		counter_add(&t->sink_full, 1);
		return;
	}
	w->sent = n ? n : -EIO;
	to->ready |= LOOP_WRITABLE;
	loop_soon(r->env->loop, &r->job);
}

static void complete(struct uring *u, const struct io_uring_cqe *cqe)
{
	struct ride *w = find(u, cqe->user_data);
	struct buf *b = NULL;

	if ((cqe->user_data & 3) == OP_CANCEL)
		return;
	if (cqe->flags & IORING_CQE_F_BUFFER)
		b = unstock(u, cqe->flags >> IORING_CQE_BUFFER_SHIFT,
			    cqe->res > 0 ? (size_t)cqe->res : 0);
	if (b && (!w || !b->conduit.held)) {
		buf_give(b);
		b = NULL;
	}
	if (!w)
		return;
	if ((cqe->user_data & 3) == OP_SEND)
		sent(w, cqe->res);
	else
		received(w, cqe->res, b, cqe->flags & IORING_CQE_F_MORE);
}

static void reap(struct uring *u)
{
	struct io_uring_cqe *cqe;
	unsigned head, n = 0;

	io_uring_for_each_cqe(&u->ring, head, cqe)
	{
		complete(u, cqe);
		n++;
	}
	io_uring_cq_advance(&u->ring, n);
}

/* The loop's flush. */
static void uring_flush(struct job *j)
{
	struct uring *u = container_of(j, struct uring, flush);
	int n;

	restock(u);
	(void)io_uring_cq_eventfd_toggle(&u->ring, false);
	n = io_uring_submit_and_get_events(&u->ring);
	(void)io_uring_cq_eventfd_toggle(&u->ring, true);
	reap(u);
	atomic_thread_fence(memory_order_seq_cst);
	if (n < 0 || IO_URING_READ_ONCE(*u->ring.sq.kflags) &
			     (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW))
		u->env->loop->flush_due = true;
}

static void uring_ready(struct watch *w)
{
	container_of(w, struct uring, bell)->env->loop->flush_due = true;
}

static ssize_t ride_fill(struct conduit *c, int fd)
{
	struct ride *w = to_ride(c);
	int err = w->end;

	w->now = pop(w);
	if (w->now) {
		c->held = w->now->conduit.held;
		tally_call(&c->tally->recv, c->held);
		if (!w->n_ahead && w->end == NO_END && !w->leaving)
			(void)receive(w); /* with the send of this one */
		return (ssize_t)c->held;
	}
	if (w->end != NO_END) {
		w->end = NO_END;
		return err;
	}
	if (w->leaving)
		return -EINPROGRESS;
	err = receive(w);
	return err ? err : -EAGAIN;
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
	sqe = get_sqe(w->uring);
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
	return !w->receiving && !w->sending && !w->first && !w->now &&
	       w->end == NO_END;
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

		if (!w)
			return;
		*w = (struct ride){
			.conduit = { .ops = &ride_ops,
				     .size = r->env->bufs.size,
				     .tally = &r->env->tally },
			.uring = u,
			.relay = r,
			.at = w->at,
			.gen = w->gen,
			.index = i,
			.end = NO_END,
			.bulk = true, /* who knows */
		};
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

/* Whether a write has failed, and the lane has yet to learn it. */
bool uring_has_failed(const struct lane *l)
{
	return l->ride && l->ride->sent < 0;
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
	stop_receiving(w);
	if (!is_empty(w))
		return false;
	ride_end(l);
	return true;
}

/* Has no write of a lane be in flight, before what it holds is thrown away. */
void uring_settle(struct lane *l)
{
	struct ride *w = l->ride;

	if (!w)
		return;
	while (w->sending) {
		(void)io_uring_submit(&w->uring->ring);
		reap(w->uring);
	}
	if (w->sent <= 0)
		return;
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
		tally_call(&r->env->tally.recv, b->conduit.held);
		counter_add(&r->env->tally.dropped[why], b->conduit.held);
		l->read += b->conduit.held;
		buf_give(b);
	}
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

		if (!l->ride)
			continue;
		l->ride->leaving = true;
		stop_receiving(l->ride);
		if (l->ride->receiving) {
			over = false;
			continue;
		}
		drop_ahead(r, l, why);
		ride_end(l);
	}
	return over;
}

bool uring_is_built(void)
{
	return true;
}

static void stock_fini(struct uring *u)
{
	for (unsigned i = 0; i < STOCK; i++)
		if (u->stock[i])
			buf_unstock(u->stock[i]);
	free(u->provided);
}

static int stock_init(struct uring *u)
{
	size_t size = STOCK * sizeof(struct io_uring_buf);
	struct io_uring_buf_reg reg = { .ring_entries = STOCK };
	int err;

	u->provided = aligned_alloc((size_t)sysconf(_SC_PAGESIZE),
				    (size_t)sysconf(_SC_PAGESIZE));
	if (!u->provided)
		return -ENOMEM;
	assert(size <= (size_t)sysconf(_SC_PAGESIZE));
	io_uring_buf_ring_init(u->provided);
	for (unsigned i = 0; i < STOCK; i++)
		u->empty[u->n_empty++] = (uint16_t)i;
	reg.ring_addr = (uintptr_t)u->provided;
	err = io_uring_register_buf_ring(&u->ring, &reg, 0);
	if (!err && !restock(u))
		err = -ENOMEM;
	return err;
}

static int bell_init(struct uring *u)
{
	cleanup(close_fdp) int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = io_uring_register_eventfd(&u->ring, fd);
	if (!err)
		err = loop_watch(u->env->loop, &u->bell, fd, EPOLLIN | EPOLLET,
				 uring_ready);
	if (!err)
		steal_fd(&fd);
	else
		u->bell.fd = -1;
	return err;
}

/**
 * uring_open() - make a ring for the relays of one thread
 *
 * The kernel must be 6.1 or later, which is when DEFER_TASKRUN came; multishot
 * receives and rings of buffers are older.
 *
 * Return: 0; or a negative errno, and relays go on without.
 */
int uring_open(struct relay_env *env)
{
	struct io_uring_params how = {
		.flags = IORING_SETUP_CQSIZE | IORING_SETUP_R_DISABLED |
			 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
		.cq_entries = COMPLETIONS,
	};
	struct uring *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	u->env = env;
	u->bell.fd = -1;
	u->flush.fn = uring_flush;
	err = io_uring_queue_init_params(ENTRIES, &u->ring, &how);
	if (err) {
		free(u);
		return err;
	}
	env->loop->flush = &u->flush;
	env->bufs.keep = 2 * STOCK;
	env->uring = u;
	err = stock_init(u);
	if (!err)
		err = bell_init(u);
	if (err)
		uring_close(env);
	return err;
}

/* All relays must be done. */
void uring_close(struct relay_env *env)
{
	struct uring *u = env->uring;

	if (!u)
		return;
	env->uring = NULL;
	env->loop->flush = NULL;
	close_fd(u->bell.fd);
	io_uring_queue_exit(&u->ring);
	stock_fini(u);
	for (unsigned i = 0; i < u->n_rides; i++)
		free(u->rides[i]);
	free(u->rides);
	free(u);
}
