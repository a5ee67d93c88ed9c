/* SPDX-License-Identifier: MIT */
/*
 * conduit.h - where a lane's bytes rest between the two sockets
 *
 * A conduit is borrowed when a lane is about to read and given back when the
 * last byte has left, so that an idle connection holds none. It carries its
 * own operations: every lane, at every moment, may use another kind.
 */
#ifndef RELAY_CONDUIT_H
#define RELAY_CONDUIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "relay/relay_stats.h"

struct conduit;

/**
 * struct conduit_ops - a kind of conduit
 * @fill:	read once from @fd, never blocking, at most conduit.size bytes;
 *		only when nothing is held, so that -EAGAIN can only mean that
 *		the source has nothing (K4), and memory is bounded by one fill
 * @drain:	write once to @fd, never blocking, from what is held
 * @give:	give back to where it was taken from, with or without bytes
 * @short_is_empty: a fill of less than conduit.size bytes has emptied the
 *		source (true of recv(2) alone: a pipe may be out of slots, K1)
 * @is_pipe:	another kind can do what this one's system call refuses
 *
 * @fill and @drain return:
 *	> 0		so many bytes moved, and conduit.held says so
 *	0		fill: the peer has sent its FIN
 *	-EAGAIN		nothing to read, or the sink takes no more
 *	-EINTR		try again
 *	-EINPROGRESS	the relay is run when it is over
 *	-ENOMEM, -ENOBUFS	try again in a while
 *	other < 0	see errors.h: the connection has ended, or the call is
 *			refused here
 */
struct conduit_ops {
	ssize_t (*fill)(struct conduit *c, int fd);
	ssize_t (*drain)(struct conduit *c, int fd);
	void (*give)(struct conduit *c);
	bool short_is_empty;
	bool is_pipe;
};

/**
 * struct conduit - the head of struct pipe and of struct buf
 * @size:	bytes it is filled with at most
 * @held:	bytes inside now
 * @stats:	where its calls are counted
 */
struct conduit {
	const struct conduit_ops *ops;
	size_t size, held;
	struct relay_stats *stats;
};

#endif /* RELAY_CONDUIT_H */
