/* SPDX-License-Identifier: MIT */
/*
 * What the kernel tests have in common: one watched socket, one pipe, and the
 * patience to wait until the other side's bytes have really come.
 *
 * K1, K2, ... in the tests are the numbers of the facts in README.md beside
 * this file; the tests say in words what each is.
 */
#ifndef KERNEL_FIXTURE_H
#define KERNEL_FIXTURE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include "support/peer.h"
#include "support/suite.h"

/* so long is waited for what should not come */
#define NEVER_MS 40

/* all that a relay's socket is ever watched for */
#define EDGE_ALL (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET)

/* A pair of which fd[0] is the peer's end, with TCP_NODELAY, and fd[1] ours,
 * nonblocking. */
void fixture_pair(int fd[2]);

/* A nonblocking pipe of @size bytes, 0 for as it comes. */
void fixture_pipe(int pipe[2], int size);

void fixture_close(int pair[2]);

/* A new epoll descriptor that watches @fd for @mask. */
int edge_watch(int fd, uint32_t mask);

/* The next event of @ep's only socket; 0 if none comes in @timeout_ms. */
uint32_t edge_next(int ep, int timeout_ms);

/* Gathers edges until all of @bits have been seen, and fails the test if they
 * do not come. Returns all bits seen. */
uint32_t edge_until(int ep, uint32_t bits);

/* splice(2) as a forwarder calls it; a count or a negative errno. */
ssize_t splice_in(int fd, int pipe[2], size_t n);
ssize_t splice_out(int pipe[2], int fd, size_t n);

/* recv() and send() that never block, with a negative errno. */
ssize_t recv_now(int fd, void *buf, size_t n);
ssize_t send_now(int fd, const void *buf, size_t n);

/* Sends @n bytes, or receives and forgets @n bytes, or fails the test. */
void peer_says(int fd, const void *buf, size_t n);
void peer_gets(int fd, size_t n);

/* Waits until @n bytes can be read (up to the urgent mark, if there is one),
 * until all that was sent has been acked, until the peer's FIN is there, until
 * the peer's RST is. */
void await_unread(int fd, int n);
void await_acked(int fd);
void await_fin(int fd);
void await_reset(int fd);

/* Reads @fd to its end, which is a RST; returns the bytes before it. */
size_t read_to_reset(int fd);

/*
 * Splices segments of @n bytes one by one from @fd[1] into the pipe until it
 * says EAGAIN. Returns the bytes held; the last @n bytes sent are still in the
 * socket, then.
 */
size_t fill_slots(int fd[2], int pipe[2], size_t n);

/* Sends on @fd until it says EAGAIN even to one byte, and goes on doing so for
 * a while. Returns the bytes sent. */
size_t fill_socket(int fd);

#endif
