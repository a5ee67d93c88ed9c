/* SPDX-License-Identifier: MIT */
/*
 * The other end of a TCP connection, as a test plays it.
 *
 * All of it works on blocking and on nonblocking sockets alike, with a
 * deadline, and never raises SIGPIPE. Errors are negative errno values.
 * What only prepares a test (tcp_pair, tcp_listen, socket options) fails the
 * test by itself, so must be called from the test's own thread; what a test is
 * about (connecting, bytes, ends) is returned.
 *
 * Outside of a Check run these may be called, too: only a failure needs Check.
 *
 * A program linked with -Wl,--wrap=send and the like wraps the calls made in
 * here, too.
 */
#ifndef SUPPORT_PEER_H
#define SUPPORT_PEER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/clock.h"

/* Long enough for anything that does come, however busy the machine is. */
#define SOON_MS 20000

/* A connected pair over loopback, blocking and close-on-exec, with no option
 * set: @out[0] has connected, @out[1] was accepted. Over ::1 for tcp_pair6. */
void tcp_pair(int out[2]);
void tcp_pair6(int out[2]);

/* Listens on @ip ("127.0.0.1", "::1", ...) and @port, 0 for any free one.
 * Returns the blocking descriptor. */
int tcp_listen(const char *ip, uint16_t port);

/* The local port of a socket. */
uint16_t tcp_port(int fd);

/* Connects; returns a blocking descriptor or a negative errno. */
int tcp_connect(const char *ip, uint16_t port);

/* Accepts within @timeout_ms; returns a blocking descriptor or a negative
 * errno, -ETIMEDOUT if nobody came. */
int tcp_accept(int listener, int timeout_ms);

void peer_nonblock(int fd);
void peer_nodelay(int fd);

/* Makes both socket buffers about @bytes big: little is on the way, then. */
void peer_small_buffers(int fd, int bytes);

/* Waits for @events of poll(2); returns what came (ERR and HUP, too), or
 * -ETIMEDOUT. */
int peer_wait(int fd, short events, int timeout_ms);

/* Sends all of @n bytes; returns 0 or a negative errno, -ETIMEDOUT if they
 * were not all taken in time. */
int peer_send_all(int fd, const void *buf, size_t n, int timeout_ms);

/* Receives @n bytes; returns how many came (less than @n: then EOF did), or a
 * negative errno, -ETIMEDOUT if there were too few in time. */
ssize_t peer_recv_all(int fd, void *buf, size_t n, int timeout_ms);

/* Reads and forgets what comes until EOF. Returns how much that was, or the
 * negative errno that came instead of EOF. */
int64_t peer_drain(int fd, int timeout_ms);

/* What comes next is EOF (or a reset): returns 0 if it was. -EBADMSG says that
 * a byte came, -ENODATA that EOF came instead of a reset, -ETIMEDOUT that
 * nothing did; else it is the error that came. */
int peer_expect_eof(int fd, int timeout_ms);
int peer_expect_reset(int fd, int timeout_ms);

/* Nothing at all comes in @ms: returns 0, or -EBADMSG for a byte, -ENODATA for
 * EOF, or the error that came. Takes nothing. */
int peer_expect_silence(int fd, int ms);

/* Closes @fd with a RST. */
void peer_reset(int fd);

/* Bytes not yet acknowledged by the other kernel (an unacknowledged FIN counts
 * as one), and bytes that could be read. */
int peer_unacked(int fd);
int peer_unread(int fd);

#endif
