/* SPDX-License-Identifier: MIT */
/*
 * Stands between the mechanism and its system calls, by -Wl,--wrap, and has
 * one of them fail.
 *
 * Only what is called while fault.live is set counts, so the test's own peers,
 * which play in the same thread, are left alone.
 *
 * An errno says something about the world, and it would be a lie that no
 * program can survive if that were not so. EAGAIN is a promise that an edge
 * will follow: an invented one is followed by a real one, for the socket's
 * registration is renewed. ECONNRESET and the like say that the connection is
 * dead: so its peer does reset it, before the call returns.
 */
#ifndef FAULT_SHIM_H
#define FAULT_SHIM_H

#include <stdbool.h>

/* No errno: the peer resets, and then the call is made. */
#define FAULT_RESET 10000

/* What a connection says that is there no more. */
#define FAULT_ENDS ECONNRESET, ETIMEDOUT, FAULT_RESET
/* What says that it is to be tried again. */
#define FAULT_PAUSES EINTR, EAGAIN, ENOMEM, ENOBUFS

/* Every call that can fail: name, and the errnos that it fails with here. */
#define FAULT_CALLS(X)                                                      \
	X(splice_in, FAULT_PAUSES, EINVAL, ENOSYS, EPERM, EIO, FAULT_ENDS)  \
	X(splice_out, FAULT_PAUSES, EINVAL, ENOSYS, EIO, EPIPE, FAULT_ENDS) \
	X(recv, FAULT_PAUSES, EIO, EHOSTUNREACH, FAULT_ENDS)                \
	X(send, FAULT_PAUSES, EIO, EPIPE, FAULT_ENDS)                       \
	X(shutdown, ENOTCONN, ENOBUFS, EIO, FAULT_RESET)                    \
	X(read, EINTR, EAGAIN, ENOMEM, EIO)                                 \
	X(write, EINTR, EAGAIN, EIO)                                        \
	X(pipe2, EMFILE, ENFILE, ENOMEM, EPERM)                             \
	X(fcntl, EPERM, EBUSY, ENOMEM, EINVAL)                              \
	X(ioctl, ENOMEM, EIO)                                               \
	X(poll, EINTR, ENOMEM)                                              \
	X(epoll_create1, EMFILE, ENFILE, ENOMEM)                            \
	X(epoll_ctl, ENOMEM, ENOSPC, EPERM)                                 \
	X(epoll_wait, EINTR, EINVAL, EBADF)                                 \
	X(eventfd, EMFILE, ENFILE, ENODEV, ENOMEM)                          \
	X(timerfd_create, EMFILE, ENFILE, ENODEV, ENOMEM)                   \
	X(timerfd_settime, EINVAL, ENOMEM)                                  \
	X(getsockopt, ENOBUFS, ENOMEM)                                      \
	X(setsockopt, ENOMEM, ENOBUFS, EINVAL)                              \
	X(mmap, ENOMEM)                                                     \
	X(calloc, ENOMEM)                                                   \
	X(realloc, ENOMEM)

enum fault_call {
#define X(name, ...) FAULT_##name,
	FAULT_CALLS(X)
#undef X
		FAULT_CALLS_N
};

/**
 * struct refusal - a call that is refused as such, whoever makes it
 * @err:	errno; 0 for no refusal
 * @from:	the first of its kind to be refused, counted from 1
 * @times:	how many are
 * @seen:	how many have been made
 */
struct refusal {
	enum fault_call call;
	int err;
	unsigned from, times, seen;
};

/**
 * struct fault - what fails, and what has
 * @live:	calls count now
 * @at:		the call that fails, of all, counted from 1; 0 for none
 * @pick:	which of its errnos it fails with; if it has fewer, it succeeds
 * @calls:	how many were made
 * @hit:	which has failed, @hit_errno: with what, 0 if none has
 * @reached:	how many of each were made, ever
 * @blocks:	memory allocated and not yet freed
 * @stalls:	calls of splice(2) that would make the kernel wait for more: with
 *		SPLICE_F_MORE (K8), or for more than the pipe holds (K9)
 * @reset:	resets the connection of the socket @fd, from its peer's end
 */
struct fault {
	bool live;
	unsigned at, pick, calls;
	enum fault_call hit;
	int hit_errno;
	unsigned reached[FAULT_CALLS_N];
	int blocks;
	unsigned stalls;
	struct refusal refusal;
	void (*reset)(int fd);
};

extern struct fault fault;

/* Starts to count anew, and has call @at fail with its @pick-th errno. */
void fault_set(unsigned at, unsigned pick);

/* Which call has failed, and how, in words. */
const char *fault_what(void);
const char *fault_name(enum fault_call call);

#endif /* FAULT_SHIM_H */
