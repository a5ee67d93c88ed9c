/* SPDX-License-Identifier: MIT */
/*
 * stream.h - both directions of one connection's payload
 */
#ifndef LOAD_STREAM_H
#define LOAD_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STREAM_PIECE (256 << 10) /* bytes moved by one call, at most */

struct stream {
	uint16_t id;
	bool stamped;	   /* stamps are sent, and expected */
	bool wrong;	   /* a wrong byte came, at position @got */
	uint64_t sent;	   /* bytes so far, which is also the position */
	uint64_t got;	   /* likewise; right ones only if @stamped */
	const char *piece; /* what the last stream_recv() read, until the next */
};

/**
 * stream_send() - send the next bytes of a stream
 * @s:		stream
 * @fd:		socket, not blocking
 * @most:	bytes to send at most, not 0
 *
 * Return: bytes sent, or a negative errno (-EAGAIN: not now).
 */
ssize_t stream_send(struct stream *s, int fd, uint64_t most);

/**
 * stream_recv() - receive the next bytes of a stream and check them
 * @s:		stream
 * @fd:		socket, not blocking
 * @most:	bytes to receive at most, not 0
 *
 * Return: bytes received, 0 at the end, or a negative errno (-EAGAIN: not
 * now; -EBADMSG: a byte is wrong, which has been said on stderr). A stream
 * that was wrong once is received, but neither counted nor checked any more.
 */
ssize_t stream_recv(struct stream *s, int fd, uint64_t most);

#endif
