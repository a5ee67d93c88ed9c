/* SPDX-License-Identifier: MIT */
/*
 * uring.h - the parts of the io_uring engine; see ring.c.
 */
#ifndef RELAY_URING_URING_H
#define RELAY_URING_URING_H

#include <liburing.h>

#include "relay/engine.h"

/* The most buffers that are provided to receive into. */
#define BUF_RING_MAX 32

/* What a request does: the lowest bit of its name, which is its lane. */
enum op { OP_RECV, OP_SEND };

/* No end was received. */
#define NO_END 1

/**
 * struct uring_lane - a lane that the ring moves
 * @conduit:	what the lane holds of it: @now
 * @relay, @index: whose lane, and which
 * @receiving, @sending: such a request is in the queue
 * @full:	the last receive filled its buffer
 * @budget_end:	how much the lane may have read before others have their turn
 * @taken:	buf_ring.taken when its last receive was requested
 * @next:	received, and not yet read by the lane; or @end, 0 or a negative
 *		errno, if it is not NO_END
 * @now:	the buffer that the lane drains
 * @sent:	what the last send came to, until the lane has learned it; 0 none
 */
struct uring_lane {
	struct conduit conduit;
	struct uring *uring;
	struct relay *relay;
	uint8_t index;
	bool receiving, sending, full;
	uint64_t budget_end;
	unsigned taken;
	struct buf *next, *now;
	int end, sent;
};

/**
 * struct buf_ring - buffers that the kernel receives into
 * @ring:	the kernel's, of @n entries
 * @bufs:	which they are, by their number; @n_empty numbers have none
 * @taken:	how many were received into, ever
 */
struct buf_ring {
	struct io_uring_buf_ring *ring;
	struct buf *bufs[BUF_RING_MAX];
	unsigned n, n_empty, taken;
};

/**
 * struct uring - one thread's ring
 * @flush:	the loop's
 * @again:	set while the kernel has no memory for what it is requested
 */
struct uring {
	struct engine engine;
	struct io_uring ring;
	struct relay_env *env;
	struct job flush;
	struct timer again;
	struct buf_ring buf_ring;
};

/* ring.c */
struct io_uring_sqe *uring_sqe(const struct uring_lane *w, enum op op);
void uring_cancel(struct uring_lane *w, enum op op);

/* buf_ring.c */
int buf_ring_init(struct uring *u);
void buf_ring_fini(struct uring *u);
bool buf_ring_fill(struct uring *u);
struct buf *buf_ring_take(struct uring *u, const struct io_uring_cqe *cqe);

/* lane.c */
void uring_no_memory(const struct uring_lane *w);
void uring_received(struct uring_lane *w, int n, struct buf *b);
void uring_sent(struct uring_lane *w, int n);
void uring_start(struct relay *r);
void uring_settle(struct lane *l);
ssize_t uring_discard(struct lane *l);
void uring_stop(struct relay *r, enum relay_drop why);

#endif /* RELAY_URING_URING_H */
