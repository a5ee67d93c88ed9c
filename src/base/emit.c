/* SPDX-License-Identifier: MIT */
/*
 * emit.c - write text to a descriptor without waiting for who reads it
 *
 * The descriptor may be shared with other programs (a terminal, the pipe of a
 * service manager), so it must not be made nonblocking. poll(2) calls a pipe
 * writable when it has room for PIPE_BUF bytes: that much is written at once.
 */
#include "base/emit.h"

#include <limits.h>
#include <poll.h>

#include "base/util.h"

/**
 * emit() - write @text, in pieces that do not block
 * @wait_ms:	how long to wait, for each piece, for room
 *
 * Return: whether all of it was written; if not, a part may have been.
 */
bool emit(int fd, const char *text, size_t len, int wait_ms)
{
	while (len) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		ssize_t n;

		if (poll(&p, 1, wait_ms) != 1 || !(p.revents & POLLOUT))
			return false;
		n = write(fd, text, min_size(len, PIPE_BUF));
		if (n <= 0)
			return false;
		text += n;
		len -= (size_t)n;
	}
	return true;
}
