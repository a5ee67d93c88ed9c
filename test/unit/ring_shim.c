/* SPDX-License-Identifier: MIT */
/*
 * A kernel without memory. What fails has not been done: such a request is made a
 * NOP before it is submitted, and its completion an error.
 */
#include "unit/ring_shim.h"

#include <stdlib.h>

#include "relay/bufs.h"
#include "relay/uring_ring.h"

#define MOST_DOOMED 1024

struct shim shim = { .buffers = -1 };

static uint64_t doomed[MOST_DOOMED];
static unsigned n_doomed;

static void doom(struct io_uring_sqe *sqe)
{
	if (!shim.times || n_doomed == MOST_DOOMED ||
	    (int)(sqe->user_data & 3) != shim.op || sqe->opcode == IORING_OP_NOP)
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

static int submit(struct io_uring *ring, int (*real)(struct io_uring *))
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
	n = real(ring);
	*tail = all;
	fail_doomed(ring);
	return n;
}

#define WRAP_SUBMIT(name)                        \
	int __real_##name(struct io_uring *r);   \
	int __wrap_##name(struct io_uring *r);   \
	int __wrap_##name(struct io_uring *r)    \
	{                                        \
		return submit(r, __real_##name); \
	}

WRAP_SUBMIT(io_uring_submit)
WRAP_SUBMIT(io_uring_submit_and_get_events)

struct buf *__real_buf_stock(struct bufs *bs);
struct buf *__wrap_buf_stock(struct bufs *bs);

struct buf *__wrap_buf_stock(struct bufs *bs)
{
	if (!shim.buffers)
		return NULL;
	if (shim.buffers > 0)
		shim.buffers--;
	return __real_buf_stock(bs);
}

static bool allocation_fails(void)
{
	return shim.allocation && !--shim.allocation;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_calloc(size_t n, size_t size)
{
	return allocation_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return allocation_fails() ? NULL : __real_realloc(p, n);
}
