/* SPDX-License-Identifier: MIT */
/*
 * Stands between the mechanism and its system calls.
 */
#include "fault/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

struct fault fault;

#define MOST_ERRNOS 14

static const struct {
	const char *name;
	int errnos[MOST_ERRNOS + 1]; /* ended by a 0 */
} kinds[] = {
#define X(name, ...) { #name, { __VA_ARGS__ } },
	FAULT_CALLS(X)
#undef X
};

const char *fault_name(enum fault_call call)
{
	return kinds[call].name;
}

void fault_set(unsigned at, unsigned pick)
{
	fault.at = at;
	fault.pick = pick;
	fault.calls = 0;
	fault.hit_errno = 0;
	fault.refusal.seen = 0;
}

const char *fault_what(void)
{
	static char text[100];

	if (!fault.hit_errno)
		return "no call fails";
	snprintf(text, sizeof(text), "%s number %u %s", fault_name(fault.hit),
		 fault.at,
		 fault.hit_errno == FAULT_RESET ? "meets a reset"
						: strerror(fault.hit_errno));
	return text;
}

static int errno_of(enum fault_call call, unsigned pick)
{
	for (unsigned i = 0; i < pick; i++)
		if (!kinds[call].errnos[i])
			return 0;
	return kinds[call].errnos[pick];
}

static bool refused(enum fault_call call)
{
	struct refusal *r = &fault.refusal;

	if (!r->err || call != r->call)
		return false;
	r->seen++;
	if (r->seen < r->from || r->seen >= r->from + r->times)
		return false;
	errno = r->err;
	return true;
}

/* Whether this call is to fail; errno is set then. */
static bool fails(enum fault_call call)
{
	int err;

	if (!fault.live)
		return false;
	fault.reached[call]++;
	if (++fault.calls != fault.at)
		return false;
	err = errno_of(call, fault.pick);
	if (!err)
		return false;
	fault.hit = call;
	fault.hit_errno = err;
	errno = err;
	return true;
}

#define MOST_FDS 1024

/* What is registered, by descriptor, to be able to make a fresh edge. */
static struct {
	int epfd;
	struct epoll_event ev;
} watched[MOST_FDS];

int __real_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev);

int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	int err;

	if (fails(FAULT_epoll_ctl))
		return -1;
	err = __real_epoll_ctl(epfd, op, fd, ev);
	if (!err && op == EPOLL_CTL_ADD && fd < MOST_FDS) {
		watched[fd].epfd = epfd;
		watched[fd].ev = *ev;
	}
	return err;
}

/* Makes an errno of the socket @fd the truth: see shim.h. */
static void make_true(int err, int fd)
{
	fault.live = false;
	switch (err) {
	case EAGAIN:
		__real_epoll_ctl(watched[fd].epfd, EPOLL_CTL_MOD, fd,
				 &watched[fd].ev);
		break;
	case ECONNRESET:
	case EPIPE:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENOTCONN:
	case FAULT_RESET:
		fault.reset(fd);
		break;
	}
	fault.live = true;
}

/* As fails(), for what is done to the socket @fd. */
static bool fails_on(enum fault_call call, int fd)
{
	int err;

	if (!fails(call))
		return false;
	err = errno;
	make_true(err, fd);
	errno = err;
	return err != FAULT_RESET;
}

static bool is_a(mode_t kind, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && (st.st_mode & S_IFMT) == kind;
}

int __real_ioctl(int fd, unsigned long what, ...);

static size_t bytes_in(int pipe)
{
	int n = 0;

	(void)__real_ioctl(pipe, FIONREAD, &n);
	return (size_t)n;
}

ssize_t __real_splice(int in, off64_t *in_off, int out, off64_t *out_off,
		      size_t n, unsigned flags);
ssize_t __wrap_splice(int in, off64_t *in_off, int out, off64_t *out_off,
		      size_t n, unsigned flags);

ssize_t __wrap_splice(int in, off64_t *in_off, int out, off64_t *out_off,
		      size_t n, unsigned flags)
{
	bool from_socket = is_a(S_IFSOCK, in);
	enum fault_call call = from_socket ? FAULT_splice_in : FAULT_splice_out;

	fault.stalls += flags & SPLICE_F_MORE || !n ||
			(!from_socket && n > bytes_in(in));
	if (refused(call) || fails_on(call, from_socket ? in : out))
		return -1;
	return __real_splice(in, in_off, out, out_off, n, flags);
}

ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n);

/* Of a pipe, what is to be refused in the end comes short before. */
ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	const struct refusal *r = &fault.refusal;

	if (r->err && r->call == FAULT_read && is_a(S_IFIFO, fd)) {
		if (refused(FAULT_read))
			return -1;
		n = n / 2 + 1;
	}
	return fails(FAULT_read) ? -1 : __real_read(fd, buf, n);
}

/* What has nothing special about it: -1 if it is to fail. */
#define WRAP(name, ret, params, args, failed) \
	ret __real_##name params;             \
	ret __wrap_##name params;             \
	ret __wrap_##name params              \
	{                                     \
		if (failed)                   \
			return (ret)-1;       \
		return __real_##name args;    \
	}

struct itimerspec;

WRAP(recv, ssize_t, (int fd, void *buf, size_t n, int flags),
     (fd, buf, n, flags), fails_on(FAULT_recv, fd))
WRAP(send, ssize_t, (int fd, const void *buf, size_t n, int flags),
     (fd, buf, n, flags), fails_on(FAULT_send, fd))
WRAP(write, ssize_t, (int fd, const void *buf, size_t n), (fd, buf, n),
     fails(FAULT_write))
WRAP(shutdown, int, (int fd, int how), (fd, how), fails_on(FAULT_shutdown, fd))
WRAP(pipe2, int, (int *fd, int flags), (fd, flags), fails(FAULT_pipe2))
WRAP(poll, int, (struct pollfd * fd, nfds_t n, int timeout), (fd, n, timeout),
     fails(FAULT_poll))
WRAP(epoll_create1, int, (int flags), (flags), fails(FAULT_epoll_create1))
WRAP(epoll_wait, int, (int ep, struct epoll_event *ev, int n, int timeout),
     (ep, ev, n, timeout), fails(FAULT_epoll_wait))
WRAP(eventfd, int, (unsigned count, int flags), (count, flags),
     fails(FAULT_eventfd))
WRAP(timerfd_create, int, (int clock, int flags), (clock, flags),
     fails(FAULT_timerfd_create))
WRAP(timerfd_settime, int,
     (int fd, int flags, const struct itimerspec *is, struct itimerspec *was),
     (fd, flags, is, was), fails(FAULT_timerfd_settime))
WRAP(getsockopt, int, (int fd, int level, int name, void *value, socklen_t *len),
     (fd, level, name, value, len), fails(FAULT_getsockopt))
WRAP(setsockopt, int,
     (int fd, int level, int name, const void *value, socklen_t len),
     (fd, level, name, value, len), fails(FAULT_setsockopt))

/* One argument more, of whatever kind, or none. */
#define WRAP_MORE(name, type, call)                   \
	int __real_##name(int fd, type what, ...);    \
	int __wrap_##name(int fd, type what, ...);    \
	int __wrap_##name(int fd, type what, ...)     \
	{                                             \
		va_list ap;                           \
		void *more;                           \
                                                      \
		va_start(ap, what);                   \
		more = va_arg(ap, void *);            \
		va_end(ap);                           \
		if (fails(call))                      \
			return -1;                    \
		return __real_##name(fd, what, more); \
	}

WRAP_MORE(fcntl, int, FAULT_fcntl)
WRAP_MORE(fcntl64, int, FAULT_fcntl) /* what it is with large files */
WRAP_MORE(ioctl, unsigned long, FAULT_ioctl)

/* Memory: what was allocated while it counts must be freed while it does. */
static void *counted(void *p)
{
	fault.blocks += fault.live && p;
	return p;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
void __real_free(void *p);
void __wrap_free(void *p);

void *__wrap_calloc(size_t n, size_t size)
{
	return fails(FAULT_calloc) ? NULL : counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
	bool more = !p;

	if (fails(FAULT_realloc))
		return NULL;
	p = __real_realloc(p, n);
	return more ? counted(p) : p;
}

void __wrap_free(void *p)
{
	fault.blocks -= fault.live && p;
	__real_free(p);
}

#define WRAP_MMAP(name)                                                      \
	void *__real_##name(void *at, size_t n, int prot, int flags, int fd, \
			    off_t off);                                      \
	void *__wrap_##name(void *at, size_t n, int prot, int flags, int fd, \
			    off_t off);                                      \
	void *__wrap_##name(void *at, size_t n, int prot, int flags, int fd, \
			    off_t off)                                       \
	{                                                                    \
		if (fails(FAULT_mmap))                                       \
			return MAP_FAILED;                                   \
		return counted(__real_##name(at, n, prot, flags, fd, off));  \
	}

WRAP_MMAP(mmap)
WRAP_MMAP(mmap64) /* what it is with large files */

int __real_munmap(void *at, size_t n);
int __wrap_munmap(void *at, size_t n);

int __wrap_munmap(void *at, size_t n)
{
	fault.blocks -= fault.live;
	return __real_munmap(at, n);
}
