/* SPDX-License-Identifier: MIT */
/*
 * uring.c - the io_uring engine: the ring receives and sends for the lanes
 *
 * DOC: Theory of operation
 *
 * A fill of a lane on the ring takes what the ring has received, a drain requests
 * a send, and either says "in progress" until a completion has run the relay
 * again. So lane.c decides on ends as ever, and epoll goes on telling of them, and
 * of urgent data.
 *
 * One ring a worker. loop.flush submits the queue before the jobs of a turn, and
 * behind them: one call for all lanes that are ready instead of one for each.
 *
 * No receive waits in the kernel, and no send: each is over when the call that
 * submits it returns (test/kernel/uring.c), and is learned of before epoll is asked
 * again. So what is in progress is what is still in the queue, and can be taken
 * back. And a completion that says EAGAIN is older than any edge that comes after:
 * it clears "readable" or "writable" where it is learned of, not when the lane runs.
 *
 * (A receive that waits would take an urgent byte for an ordinary one: it begins
 * at the mark whenever that byte comes first. One that is requested when epoll has
 * told of bytes, and of none that is urgent, begins in front of the mark, and ends
 * there: see urgent_look().)
 *
 * A receive takes a buffer of the buf_ring; the next is requested when the lane has
 * let go of that, or, if it was full, together with its send. So a sink that stalls
 * stops its source, and holds two buffers.
 *
 * A kernel without memory takes some of the queue, and is asked for the rest
 * immediately; or none, and is asked again in a while; or it takes a request, and
 * its completion says so, which is for its lane as if recv(2) or send(2) had. So
 * is a queue that is full.
 */
#include "relay/uring/uring.h"

#include <stdlib.h>

#include "base/util.h"

#define ENTRIES 256

/* The pause before the kernel is asked again to take what it has refused. */
#define REFUSED_MS 10

static uint64_t name_of(const struct uring_lane *w, enum op op)
{
	return (uintptr_t)w | op;
}

/* Return: NULL for what was taken back. */
static struct uring_lane *lane_of(uint64_t name)
{
	return (struct uring_lane *)(uintptr_t)(name & ~(uint64_t)OP_SEND);
}

/* Learns of all that is over. Return: whether anything is. */
static bool reap(struct uring *u)
{
	struct io_uring_cqe *cqe;
	unsigned head, n = 0;

	io_uring_for_each_cqe(&u->ring, head, cqe)
	{
		struct buf *b = buf_ring_take(u, cqe);
		struct uring_lane *w = lane_of(cqe->user_data);

		if (w && cqe->user_data & OP_SEND)
			uring_sent(w, cqe->res);
		else if (w)
			uring_received(w, cqe->res, b);
		n++;
	}
	io_uring_cq_advance(&u->ring, n);
	return n;
}

/* Has the kernel take the queue now. Return: whether anything has come of it. */
static bool push(struct uring *u)
{
	unsigned before = io_uring_sq_ready(&u->ring);

	(void)io_uring_submit(&u->ring);
	before -= io_uring_sq_ready(&u->ring);
	return reap(u) || before;
}

/*
 * Begins a request.
 *
 * Return: NULL if the queue is full, and the kernel has no memory to empty it.
 */
struct io_uring_sqe *uring_sqe(const struct uring_lane *w, enum op op)
{
	struct uring *u = w->uring;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	if (!sqe && push(u))
		sqe = io_uring_get_sqe(&u->ring);
	if (!sqe)
		return NULL;
	io_uring_sqe_set_data64(sqe, name_of(w, op));
	u->env->loop->flush_due = true;
	return sqe;
}

/* Takes a request back out of the queue. Return: whether it was there. */
static bool take_back(struct uring *u, const struct uring_lane *w, enum op op)
{
	const struct io_uring_sq *sq = &u->ring.sq;

	for (unsigned at = *sq->khead; at != sq->sqe_tail; at++) {
		struct io_uring_sqe *sqe = &sq->sqes[at & sq->ring_mask];

		if (sqe->user_data != name_of(w, op))
			continue;
		io_uring_prep_nop(sqe);
		io_uring_sqe_set_data64(sqe, 0);
		return true;
	}
	return false;
}

/* Has a request not be in progress any more. */
void uring_cancel(struct uring_lane *w, enum op op)
{
	bool *in_progress = op == OP_SEND ? &w->sending : &w->receiving;

	while (*in_progress)
		if (take_back(w->uring, w, op))
			*in_progress = false;
		else
			push(w->uring);
}

static void ask_again(struct timer *t)
{
	container_of(t, struct uring, again)->env->loop->flush_due = true;
}

/* The kernel has taken nothing of the queue. */
static void refused(struct uring *u)
{
	const struct io_uring_sq *sq = &u->ring.sq;
	uint64_t due = now_ns() + REFUSED_MS * NS_PER_MS;
	const struct uring_lane *w =
		lane_of(sq->sqes[*sq->khead & sq->ring_mask].user_data);

	if (w)
		uring_no_memory(w);
	else
		counter_add(&u->env->stats.no_memory, 1);
	/* Without memory for a deadline: all the time, it will pass. */
	if (loop_timer(u->env->loop, &u->again, due, ask_again))
		u->env->loop->flush_due = true;
}

/* The loop's flush. */
static void uring_flush(struct job *j)
{
	struct uring *u = container_of(j, struct uring, flush);
	bool moved;

	buf_ring_fill(u);
	moved = push(u);
	if (!io_uring_sq_ready(&u->ring))
		return;
	if (moved)
		u->env->loop->flush_due = true;
	else
		refused(u);
}

static void uring_close(struct relay_env *env)
{
	struct uring *u = container_of(env->engine, struct uring, engine);

	env->engine = NULL;
	env->loop->flush = NULL;
	env->loop->flush_due = false;
	loop_untimer(env->loop, &u->again);
	io_uring_queue_exit(&u->ring);
	buf_ring_fini(u);
	free(u);
}

/* Takes Linux 5.19, for the buf_ring. */
static int uring_open(struct relay_env *env)
{
	struct io_uring_params how = { .flags = IORING_SETUP_SUBMIT_ALL };
	struct uring *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	err = io_uring_queue_init_params(ENTRIES, &u->ring, &how);
	if (err) {
		free(u);
		return err;
	}
	u->engine.ops = engine_of(RELAY_URING);
	u->env = env;
	u->flush.fn = uring_flush;
	env->loop->flush = &u->flush;
	env->engine = &u->engine;
	err = buf_ring_init(u);
	if (err)
		uring_close(env);
	return err;
}

const struct engine_ops *engine_of(enum relay_mode mode)
{
	static const struct engine_ops ops = {
		.open = uring_open,
		.close = uring_close,
		.start = uring_start,
		.settle = uring_settle,
		.discard = uring_discard,
		.stop = uring_stop,
	};

	return mode == RELAY_URING ? &ops : NULL;
}
