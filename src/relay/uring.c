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
 * jobs of a turn, if the ring has something to do, and behind them, for what they
 * have asked for: a call for all lanes that are ready instead of one for each.
 *
 * No receive waits, and no send: each is over when the call that submits it
 * returns. A receive takes its memory from the ring's stock, STOCK buffers, a new
 * one for each that a lane has got; the next is asked for when the lane has let go
 * of that, or, if it was full, together with its send. So a sink that stalls
 * stops its source, and holds two buffers. What a send could not take waits for
 * the sink's next edge. There is one send a lane, so that they stay in order.
 *
 * What the ring could do besides, is wait: a multishot receive goes on by itself.
 * It is an option and not the default, since it cannot keep urgent data urgent. A
 * receive that begins at the mark takes the urgent byte for an ordinary one, and
 * leaves no trace of it; one that waits begins there whenever that byte comes
 * first. test/load/marks.py counts: of 400 marks sent right behind three bytes, 50
 * were lost so, and 168 with the worker busy; by edges none was, as none is by the
 * pump, since an edge tells of a mark before anything reads across it. So it is
 * for protocols without urgent data. There,
 *
 *	when a source has no more, a multishot receive waits for it;
 *	when that has filled a buffer, or AHEAD of them wait for the sink, it is
 *	  canceled, and receives that do not wait take what there is, one each.
 *
 * So what a sink that stalls can hold then is what one call received before that,
 * STOCK buffers and AHEAD at the very most.
 *
 * With DEFER_TASKRUN such a receive runs inside loop.flush alone, behind an edge
 * that tells of urgent data if there is one by then: that cancels it. The same
 * flag makes the ring one thread's, the first that enters it, and it takes an
 * eventfd to be told of it: the ring's own descriptor does not wake epoll for
 * work that is deferred. It is edge triggered, so that nobody reads it, and off
 * inside the call, which would ring it for what it returns. (The loop could wait in
 * the ring instead, with the epoll set as one more thing to poll: then receives
 * would run before the edges are seen, and no mark would be told in time.)
 *
 * A completion names its ride by place and generation, never by pointer; a place
 * is used again, with the next generation, when nothing of it is in flight. The
 * relay is not done before that: a request holds its socket open.
 */
#include "relay/uring.h"

#include <assert.h>
#include <liburing.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/util.h"
#include "relay/errors.h"
#include "relay/lane.h"

#define ENTRIES	    256
#define COMPLETIONS 4096

/* Buffers that wait in the ring to be received into, so many bytes of them at
 * most, or so few: powers of two. */
#define STOCK	    32
#define STOCK_BYTES ((size_t)16 << 20)
#define STOCK_LEAST 4

/* Received buffers that wait for a sink before the source is stopped. */
#define AHEAD 4

/* OP_WAIT is the multishot receive. */
enum op { OP_RECV, OP_WAIT, OP_SEND, OP_CANCEL };

/* No end was received. */
#define NO_END 1

/**
 * struct ride - a lane on the ring
 * @conduit:	what the lane holds of it: @now
 * @relay, @index: whose lane, and which
 * @at, @gen:	its name in completions
 * @receiving:	a receive is in flight, or @waiting: a multishot one, which may
 *		have been told to end: @canceling
 * @leaving:	no more receives
 * @full:	the last receive filled its buffer
 * @share_end:	how much the lane may have read before others have their turn
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
	bool receiving, waiting, canceling, leaving, full, sending;
	uint64_t share_end;
	unsigned n_ahead;
	size_t ahead;
	struct buf *first, *last, *now;
	int end, sent;
	struct ride *next;
};

/**
 * struct uring - one thread's ring
 * @flush:	the loop's
 * @multishot:	lanes wait in the ring; then @bell watches its eventfd, and
 *		@enabled: a thread has entered it, whose it is
 * @provided:	the kernel's ring of @n_stock buffers to receive into; @stock:
 *		which they are, by their number there; @empty: numbers without,
 *		@n_empty
 * @rides:	all, by their place; @n_rides, and room for @room
 * @unused:	those without a lane
 */
struct uring {
	struct io_uring ring;
	struct relay_env *env;
	struct job flush;
	struct watch bell;
	bool multishot, enabled;
	struct io_uring_buf_ring *provided;
	struct buf *stock[STOCK];
	uint16_t empty[STOCK];
	unsigned n_stock, n_empty;
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
				      io_uring_buf_ring_mask(u->n_stock), n++);
	}
	if (n)
		io_uring_buf_ring_advance(u->provided, n);
	return u->n_empty < u->n_stock;
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

static void receive_sqe(struct ride *w, enum op op)
{
	struct io_uring_sqe *sqe = get_sqe(w->uring);
	int fd = w->relay->side[w->index].watch.fd;

	if (op == OP_WAIT)
		io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
	else
		io_uring_prep_recv(sqe, fd, NULL, 0, MSG_DONTWAIT);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = 0;
	io_uring_sqe_set_data64(sqe, name_of(w, op));
}

/* Asks for what the source has. Return: -EINPROGRESS, or -ENOBUFS. */
static int receive(struct ride *w)
{
	if (w->receiving || w->waiting)
		return -EINPROGRESS;
	if (!restock(w->uring))
		return -ENOBUFS;
	receive_sqe(w, OP_RECV);
	w->receiving = true;
	return -EINPROGRESS;
}

/* Asks for what the source will have. */
static void wait_for_more(struct ride *w)
{
	receive_sqe(w, OP_WAIT);
	w->waiting = true;
}

/* Has that end: a completion tells when it has. */
static void stop_waiting(struct ride *w)
{
	struct io_uring_sqe *sqe;

	if (!w->waiting || w->canceling)
		return;
	sqe = get_sqe(w->uring);
	io_uring_prep_cancel64(sqe, name_of(w, OP_WAIT), 0);
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

/* Whether a receive that filled no buffer has emptied the source: not if an end
 * or a mark is near, since no edge follows (K32). */
static bool short_is_empty(const struct ride *w)
{
	const struct side *from = &w->relay->side[w->index];

	return !w->full && !from->urgent && !from->failed &&
	       !(from->watch.ready & (LOOP_ENDING | EPOLLPRI));
}

/* The source has no more. An edge that tells of more comes after this: so it is
 * noted now, not when the lane runs. */
static void drained(struct ride *w)
{
	struct watch *from = &w->relay->side[w->index].watch;

	from->ready &= ~(uint32_t)LOOP_READABLE;
	if (w->uring->multishot && !w->leaving)
		wait_for_more(w);
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

/* A receive of @n bytes into @b, or an end, or a failure. */
static void received(struct ride *w, int n, struct buf *b)
{
	struct relay *r = w->relay;

	w->receiving = false;
	w->full = b && b->conduit.held == b->conduit.size;
	if (b)
		push(w, b);
	else if (n == -EAGAIN)
		counter_add(&r->env->tally.source_empty, 1);
	else if (n != -ENOBUFS)
		w->end = n;
	if (n == -EAGAIN || (b && short_is_empty(w)))
		drained(w);
	run(w);
}

/* The same of a multishot receive; @more: it goes on. */
static void waited(struct ride *w, int n, struct buf *b, bool more)
{
	struct relay *r = w->relay;

	if (!more)
		w->waiting = w->canceling = false;
	if (b)
		push(w, b);
	else if (n != -EAGAIN && n != -ENOBUFS && n != -ECANCELED)
		w->end = n;
	if (w->n_ahead >= AHEAD || (b && b->conduit.held == b->conduit.size))
		stop_waiting(w);
	r->side[w->index].watch.ready |= LOOP_READABLE;
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
		to->ready &= ~(uint32_t)LOOP_WRITABLE;
		counter_add(&t->sink_full, 1);
		return;
	}
	w->sent = n ? n : -EIO;
	to->ready |= LOOP_WRITABLE;
	run(w);
}

/* The buffer that a completion brings, NULL if it brings no bytes. */
static struct buf *buf_of(struct uring *u, const struct io_uring_cqe *cqe)
{
	struct buf *b;

	if (!(cqe->flags & IORING_CQE_F_BUFFER))
		return NULL;
	b = unstock(u, cqe->flags >> IORING_CQE_BUFFER_SHIFT,
		    cqe->res > 0 ? (size_t)cqe->res : 0);
	if (b->conduit.held)
		return b;
	buf_give(b);
	return NULL;
}

static void complete(struct uring *u, const struct io_uring_cqe *cqe)
{
	struct ride *w = find(u, cqe->user_data);
	struct buf *b = buf_of(u, cqe);

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
		break;
	}
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

/* Return: whether the ring has work that nothing announces. */
static bool enter(struct uring *u)
{
	int n;

	if (!u->multishot)
		return io_uring_submit(&u->ring) < 0;
	(void)io_uring_cq_eventfd_toggle(&u->ring, false);
	n = io_uring_submit_and_get_events(&u->ring);
	(void)io_uring_cq_eventfd_toggle(&u->ring, true);
	atomic_thread_fence(memory_order_seq_cst);
	return n < 0 || IO_URING_READ_ONCE(*u->ring.sq.kflags) &
				(IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

/* The loop's flush. */
static void uring_flush(struct job *j)
{
	struct uring *u = container_of(j, struct uring, flush);

	restock(u);
	if (enter(u))
		u->env->loop->flush_due = true;
	reap(u);
}

static void bell_rings(struct watch *w)
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
	return !w->receiving && !w->waiting && !w->sending && !w->first &&
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
			.share_end = r->env->share,
			.end = NO_END,
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
	stop_waiting(w);
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
		stop_waiting(l->ride);
		if (l->ride->receiving || l->ride->waiting) {
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
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct io_uring_buf_reg reg = { 0 };
	int err;

	static_assert(STOCK * sizeof(struct io_uring_buf) <= 4096, "a page");
	for (u->n_stock = STOCK; u->n_stock > STOCK_LEAST; u->n_stock /= 2)
		if (u->n_stock * u->env->bufs.size <= STOCK_BYTES)
			break;
	u->env->bufs.keep = u->n_stock; /* for as many lanes at once */
	u->provided = aligned_alloc(page, page);
	if (!u->provided)
		return -ENOMEM;
	io_uring_buf_ring_init(u->provided);
	while (u->n_empty < u->n_stock) {
		u->empty[u->n_empty] = (uint16_t)u->n_empty;
		u->n_empty++;
	}
	reg.ring_addr = (uintptr_t)u->provided;
	reg.ring_entries = u->n_stock;
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
				 bell_rings);
	if (!err)
		steal_fd(&fd);
	else
		u->bell.fd = -1;
	return err;
}

/**
 * uring_open() - make a ring for the relays of one thread
 * @multishot:	lanes wait in it; urgent data may become ordinary
 *
 * The kernel must be 5.19 or later, which is when rings of buffers came; for
 * @multishot 6.1, for DEFER_TASKRUN.
 *
 * Return: 0; or a negative errno, and relays go on without.
 */
int uring_open(struct relay_env *env, bool multishot)
{
	struct io_uring_params how = {
		.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL,
		.cq_entries = COMPLETIONS,
	};
	struct uring *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	u->env = env;
	u->bell.fd = -1;
	u->flush.fn = uring_flush;
	u->multishot = multishot;
	u->enabled = !multishot;
	if (multishot)
		how.flags |=
			IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER |
			IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
	err = io_uring_queue_init_params(ENTRIES, &u->ring, &how);
	if (err) {
		free(u);
		return err;
	}
	env->loop->flush = &u->flush;
	env->uring = u;
	err = stock_init(u);
	if (!err && multishot)
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
