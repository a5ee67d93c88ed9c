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
 * pump: both look before they read, see urgent_look(). So it is for protocols
 * without urgent data. There,
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
 *
 * A kernel without memory takes some of the queue, and is asked for the rest at
 * once; or none, and is asked again in a while; or it takes a request, and its
 * completion says so, which is for its lane as if recv(2) or send(2) had. So is a
 * queue that is full.
 */
#include "relay/uring.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/util.h"
#include "relay/uring_ring.h"

#define ENTRIES	    256
#define COMPLETIONS 4096

/* The pause before the kernel is asked again to take what it has refused. */
#define REFUSED_MS 10

/* Of the buffers that wait in the ring: so many bytes at most, or so few of them.
 * All powers of two. */
#define STOCK_BYTES ((size_t)16 << 20)
#define STOCK_LEAST 4

/* Return: NULL if the queue is full, and the kernel has no memory to empty it. */
struct io_uring_sqe *uring_sqe(struct uring *u)
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
	sqe = io_uring_get_sqe(&u->ring);
	if (!sqe && io_uring_submit(&u->ring) > 0)
		sqe = io_uring_get_sqe(&u->ring);
	if (sqe)
		u->env->loop->flush_due = true;
	return sqe;
}

/* Return: what the kernel has yet to take under that name, or NULL. */
struct io_uring_sqe *uring_queued(struct uring *u, uint64_t name)
{
	const struct io_uring_sq *sq = &u->ring.sq;

	for (unsigned at = *sq->khead; at != sq->sqe_tail; at++) {
		struct io_uring_sqe *sqe = &sq->sqes[at & sq->ring_mask];

		if (sqe->user_data == name)
			return sqe;
	}
	return NULL;
}

/* Fills the stock up. Return: whether there is anything in it. */
bool uring_restock(struct uring *u)
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
	u->taken++;
	buf_lend(b);
	b->head = 0;
	b->conduit.held = n;
	return b;
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

/* Learns of all that is over. Return: whether anything is. */
static bool reap(struct uring *u)
{
	struct io_uring_cqe *cqe;
	unsigned head, n = 0;

	io_uring_for_each_cqe(&u->ring, head, cqe)
	{
		ride_complete(u, cqe, buf_of(u, cqe));
		n++;
	}
	io_uring_cq_advance(&u->ring, n);
	return n;
}

/* Has the kernel take the queue now. Return: whether anything has come of it. */
bool uring_push(struct uring *u)
{
	unsigned before = io_uring_sq_ready(&u->ring);

	(void)io_uring_submit(&u->ring);
	before -= io_uring_sq_ready(&u->ring);
	return reap(u) || before;
}

/* Return: as io_uring_submit(3). */
static int enter(struct uring *u)
{
	int n;

	if (!u->multishot)
		return io_uring_submit(&u->ring);
	(void)io_uring_cq_eventfd_toggle(&u->ring, false);
	n = io_uring_submit_and_get_events(&u->ring);
	(void)io_uring_cq_eventfd_toggle(&u->ring, true);
	atomic_thread_fence(memory_order_seq_cst);
	return n;
}

/* Whether the ring has work that nothing announces. */
static bool has_more(const struct uring *u)
{
	return IO_URING_READ_ONCE(*u->ring.sq.kflags) &
	       (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

static void ask_again(struct timer *t)
{
	container_of(t, struct uring, again)->env->loop->flush_due = true;
}

/* The kernel has taken nothing of the queue, and nothing is over that would make
 * room for it. */
static void refused(struct uring *u)
{
	const struct io_uring_sq *sq = &u->ring.sq;
	uint64_t due = now_ns() + REFUSED_MS * NS_PER_MS;

	ride_refused(u, sq->sqes[*sq->khead & sq->ring_mask].user_data);
	/* Without memory for a deadline: all the time, it will pass. */
	if (loop_timer(u->env->loop, &u->again, due, ask_again))
		u->env->loop->flush_due = true;
}

/* The loop's flush. */
static void uring_flush(struct job *j)
{
	struct uring *u = container_of(j, struct uring, flush);
	unsigned asked, left;
	bool moved;
	int n;

	uring_restock(u);
	asked = io_uring_sq_ready(&u->ring);
	n = enter(u);
	left = io_uring_sq_ready(&u->ring);
	moved = reap(u) || left < asked;
	if (n >= 0 && !left ? has_more(u) : moved)
		u->env->loop->flush_due = true;
	else if (n < 0 || left)
		refused(u);
}

static void bell_rings(struct watch *w)
{
	container_of(w, struct uring, bell)->env->loop->flush_due = true;
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
	if (!err && !uring_restock(u))
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
	env->loop->flush_due = false;
	loop_untimer(env->loop, &u->again);
	close_fd(u->bell.fd);
	io_uring_queue_exit(&u->ring);
	stock_fini(u);
	for (unsigned i = 0; i < u->n_rides; i++)
		free(u->rides[i]);
	free(u->rides);
	free(u);
}
