/* SPDX-License-Identifier: MIT */
/*
 * A kernel without memory. What fails has not been done: such a request is made a
 * NOP before it is submitted, and its completion an error.
 */
#include "unit/ring_shim.h"

#include <stdlib.h>

#include "relay/bufs.h"
#include "relay/uring/uring.h"

#define MOST_DOOMED 1024

struct shim shim = { .buffers = -1 };

static uint64_t doomed[MOST_DOOMED];
static unsigned n_doomed;

static void doom(struct io_uring_sqe *sqe)
{
	if (!shim.times || n_doomed == MOST_DOOMED ||
	    (int)(sqe->user_data & OP_SEND) != shim.op ||
	    sqe->opcode == IORING_OP_NOP)
		return;
	shim.times--;
	doomed[n_doomed++] = sqe->user_data;
	io_uring_prep_nop(sqe);
}

static void doom_queued(const struct io_uring_sq *sq)
{
	for (unsigned at = *sq->khead; at != sq->sqe_tail; at++)
		doom(&sq->sqes[at & sq->ring_mask]);
}

static bool is_doomed(uint64_t name)
{
	for (unsigned i = 0; i < n_doomed; i++)
		if (doomed[i] == name) {
			doomed[i] = doomed[--n_doomed];
			return true;
		}
	return false;
}

static void fail_doomed(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	unsigned head;

	if (n_doomed)
		io_uring_for_each_cqe(ring, head,
				      cqe) if (!cqe->res &&
					       is_doomed(cqe->user_data))
		{
			cqe->res = shim.error;
			shim.failed++;
		}
}

int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);

int __wrap_io_uring_submit(struct io_uring *ring)
{
	unsigned *tail = &ring->sq.sqe_tail, all = *tail;
	int n;

	if (shim.refusal) {
		shim.refusals++;
		return shim.refusal;
	}
	doom_queued(&ring->sq);
	if (shim.takes && io_uring_sq_ready(ring) > shim.takes)
		*tail = *ring->sq.khead + shim.takes;
	n = __real_io_uring_submit(ring);
	*tail = all;
	fail_doomed(ring);
	return n;
}

struct buf *__real_buf_provide(struct bufs *bs);
struct buf *__wrap_buf_provide(struct bufs *bs);

struct buf *__wrap_buf_provide(struct bufs *bs)
{
	if (!shim.buffers)
		return NULL;
	if (shim.buffers > 0)
		shim.buffers--;
	return __real_buf_provide(bs);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	if (shim.allocation && !--shim.allocation)
		return NULL;
	return __real_calloc(n, size);
}
