/* SPDX-License-Identifier: MIT */
/*
 * buf_ring.c - buffers that a receive takes when it has something to receive: a
 * lane that waits for its source has none.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/util.h"
#include "relay/uring/uring.h"

/* The limit in bytes, and the fewest buffers. Both are powers of two. */
#define BUF_RING_BYTES ((size_t)16 << 20)
#define BUF_RING_MIN   4

/* Replaces those that were taken. Return: whether there are any. */
bool buf_ring_fill(struct uring *u)
{
	struct buf_ring *br = &u->buf_ring;
	int n = 0;

	for (uint16_t at = 0; br->n_empty && at < br->n; at++) {
		struct buf *b = br->bufs[at];

		if (b)
			continue;
		b = buf_provide(&u->env->bufs);
		if (!b)
			break;
		br->n_empty--;
		br->bufs[at] = b;
		io_uring_buf_ring_add(br->ring, b->data,
				      (unsigned)b->conduit.size, at,
				      io_uring_buf_ring_mask(br->n), n++);
	}
	io_uring_buf_ring_advance(br->ring, n);
	return br->n_empty < br->n;
}

/* Return: the buffer that a completion brings, NULL if it brings no bytes. */
struct buf *buf_ring_take(struct uring *u, const struct io_uring_cqe *cqe)
{
	struct buf_ring *br = &u->buf_ring;
	unsigned at = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
	struct buf *b;

	if (!(cqe->flags & IORING_CQE_F_BUFFER))
		return NULL;
	b = br->bufs[at];
	br->bufs[at] = NULL;
	br->n_empty++;
	br->taken++;
	if (cqe->res <= 0) {
		buf_withdraw(b);
		return NULL;
	}
	buf_lend(b);
	b->conduit.held = (size_t)cqe->res;
	return b;
}

/* Return: 0, or a negative errno; buf_ring_fini() either way. */
int buf_ring_init(struct uring *u)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct buf_ring *br = &u->buf_ring;
	struct io_uring_buf_reg reg = { 0 };
	int err;

	static_assert(BUF_RING_MAX * sizeof(struct io_uring_buf) <= 4096,
		      "a page");
	for (br->n = BUF_RING_MAX; br->n > BUF_RING_MIN; br->n /= 2)
		if (br->n * u->env->bufs.size <= BUF_RING_BYTES)
			break;
	br->ring = aligned_alloc(page, page);
	if (!br->ring)
		return -ENOMEM;
	io_uring_buf_ring_init(br->ring);
	br->n_empty = br->n;
	reg.ring_addr = (uintptr_t)br->ring;
	reg.ring_entries = br->n;
	err = io_uring_register_buf_ring(&u->ring, &reg, 0);
	if (!err && !buf_ring_fill(u))
		err = -ENOMEM;
	return err;
}

/* After the ring has ended: the kernel uses them no more. */
void buf_ring_fini(struct uring *u)
{
	struct buf_ring *br = &u->buf_ring;

	for (unsigned i = 0; i < BUF_RING_MAX; i++)
		if (br->bufs[i])
			buf_withdraw(br->bufs[i]);
	free(br->ring);
}
