/* SPDX-License-Identifier: MIT */
/*
 * uring_ring.h - what uring.c, the ring, and uring_ride.c, the lanes on it, share.
 */
#ifndef RELAY_URING_RING_H
#define RELAY_URING_RING_H

#include <liburing.h>

#include "relay/uring.h"

/* Buffers that wait in the ring to be received into, at most. */
#define STOCK 32

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
 * @taken:	the ring's, when its last receive was asked for
 * @queue:	received and not yet read by the lane, @n_ahead buffers with
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
	unsigned taken;
	unsigned n_ahead;
	size_t ahead;
	struct list queue;
	struct buf *now;
	int end, sent;
	struct ride *next;
};

/**
 * struct uring - one thread's ring
 * @flush:	the loop's
 * @again:	set while the kernel has no memory for what it is asked for
 * @multishot:	lanes wait in the ring; then @bell watches its eventfd, and
 *		@enabled: a thread has entered it, whose it is
 * @provided:	the kernel's ring of @n_stock buffers to receive into; @stock:
 *		which they are, by their number there; @empty: numbers without,
 *		@n_empty; @taken: how many were received into, ever
 * @rides:	all, by their place; @n_rides, and room for @room
 * @unused:	those without a lane
 */
struct uring {
	struct io_uring ring;
	struct relay_env *env;
	struct job flush;
	struct timer again;
	struct watch bell;
	bool multishot, enabled;
	struct io_uring_buf_ring *provided;
	struct buf *stock[STOCK];
	uint16_t empty[STOCK];
	unsigned n_stock, n_empty, taken;
	struct ride **rides, *unused;
	unsigned n_rides, room;
};

struct io_uring_sqe *uring_sqe(struct uring *u);
struct io_uring_sqe *uring_queued(struct uring *u, uint64_t name);
bool uring_restock(struct uring *u);
bool uring_push(struct uring *u);

/* uring_ride.c */
void ride_complete(struct uring *u, const struct io_uring_cqe *cqe,
		   struct buf *b);
void ride_refused(struct uring *u, uint64_t name);

#endif /* RELAY_URING_RING_H */
