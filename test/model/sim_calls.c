/* SPDX-License-Identifier: MIT */
/*
 * sim_calls.c - the system calls, as the linker puts them in place
 *
 * Linked with -Wl,--wrap=CALL. Descriptors of the simulation go to it, all
 * others to the real kernel. Each call of a turn is a moment at which peers
 * may act; each is counted, as one that moved something or one that did not.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "model/sim.h"

#define WRAP(type, name, ...)            \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

static const char *const names[CALLS] = {
	[CALL_SPLICE_IN] = "splice in",
	[CALL_SPLICE_OUT] = "splice out",
	[CALL_RECV] = "recv",
	[CALL_SEND] = "send",
	[CALL_READ] = "read of a pipe",
	[CALL_PIPE] = "pipe2",
	[CALL_GROW] = "fcntl",
	[CALL_WAIT] = "epoll_wait",
	[CALL_TIMER] = "timerfd_settime",
	[CALL_MEMORY] = "memory",
	[CALL_OTHER] = "other",
};

/* A call is about to be made. Return: 0, or what it fails with. */
static int begin(enum sim_call call, struct sim_sock *s)
{
	if (sim.in_turn && sim.midway)
		sim.midway();
	return sim_fault(call, s);
}

/* A call is over; @ret as the kernel has it. Return: as the C library does. */
static ssize_t end(enum sim_call call, struct sim_sock *s, ssize_t ret)
{
	trace(names[call], s ? (int)s->id : -1, ret, 0);
	if (ret > 0) {
		sim.count.moved++;
		sim.total[call] += (uint64_t)ret;
	} else {
		sim.count.idle++;
	}
	if (sim.count.moved + sim.count.idle > 20000)
		sim_fail("a turn has no end");
	if (s)
		sim_settle(s->file);
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

/* A read: not too many in a turn. The last that a share allows may go beyond
 * it, and a relay has its share twice: for an edge and again from the queue. */
static void check_share(struct sim_sock *s)
{
	bool ends = s->dead || s->twin->dead || s->failed || s->twin->failed ||
		    s->broke; /* looks again */
	size_t times = ends ? 6 : 2;

	if (s->turn_read >= times * (sim.rules.share + s->turn_most))
		sim_fail("%zu bytes read of %u in a turn", s->turn_read, s->id);
}

WRAP(ssize_t, splice, int in, loff_t *in_at, int out, loff_t *out_at,
     size_t len, unsigned flags)
{
	struct sim_file *from = sim_file(in), *to = sim_file(out);
	bool fill = from && from->kind == SIM_SOCK;
	enum sim_call call = fill ? CALL_SPLICE_IN : CALL_SPLICE_OUT;
	struct sim_sock *s;
	int err;

	if (!from)
		return __real_splice(in, in_at, out, out_at, len, flags);
	if (!len || len > SSIZE_MAX)
		sim_fail("splice(2) of %zu bytes", len);
	if (flags != SPLICE_F_NONBLOCK)
		sim_fail("splice(2) with flags %#x", flags);
	s = fill ? from->sock : to->sock;
	err = begin(call, s);
	if (err)
		return end(call, s, -err);
	if (!fill)
		return end(call, s, sim_splice_out(from->pipe, s, len));
	check_share(s);
	return end(call, s, sim_splice_in(s, to->pipe, len));
}

WRAP(ssize_t, recv, int fd, void *buf, size_t len, int flags)
{
	struct sim_file *f = sim_file(fd);
	ssize_t n;
	int err;

	if (!f)
		return __real_recv(fd, buf, len, flags);
	if (!len)
		sim_fail("recv(2) of nothing");
	err = begin(CALL_RECV, f->sock);
	if (err)
		return end(CALL_RECV, f->sock, -err);
	check_share(f->sock);
	n = tcp_recv(f->sock, buf, len, flags);
	if (n > 0 && flags & (MSG_PEEK | MSG_TRUNC))
		sim.total[CALL_RECV] -= (uint64_t)n; /* not brought in */
	return end(CALL_RECV, f->sock, n);
}

WRAP(ssize_t, send, int fd, const void *buf, size_t len, int flags)
{
	struct sim_file *f = sim_file(fd);
	int err;

	if (!f)
		return __real_send(fd, buf, len, flags);
	if (!(flags & MSG_NOSIGNAL) || !len)
		sim_fail("send(2) of %zu bytes with flags %#x", len, flags);
	err = begin(CALL_SEND, f->sock);
	return end(CALL_SEND, f->sock,
		   err ? -err : tcp_send(f->sock, buf, len, flags));
}

WRAP(ssize_t, read, int fd, void *buf, size_t len)
{
	struct sim_file *f = sim_file(fd);
	struct sim_sock *s;
	int err;

	if (!f)
		return __real_read(fd, buf, len);
	if (f->kind == SIM_EVENT || f->kind == SIM_TIMER)
		return sim_counter_read(f, buf);
	if (f->kind != SIM_PIPE_OUT)
		sim_fail("read(2) of what is no pipe");
	s = sim_pipe_source(f->pipe);
	err = begin(CALL_READ, s);
	if (sim.rules.sip && len > sim.rules.sip)
		len = sim.rules.sip;
	else if (sim.rules.chop && len > 1)
		len = 1 + choose((unsigned)len);
	return end(CALL_READ, s, err ? -err : sim_pipe_read(f->pipe, buf, len));
}

WRAP(ssize_t, write, int fd, const void *buf, size_t len)
{
	struct sim_file *f = sim_file(fd);

	if (!f)
		return __real_write(fd, buf, len);
	if (f->kind != SIM_EVENT)
		sim_fail("write(2) to what is no eventfd");
	f->n++;
	sim_wake(f, EPOLLIN);
	return (ssize_t)len;
}

WRAP(int, shutdown, int fd, int how)
{
	struct sim_file *f = sim_file(fd);
	int err;

	if (!f)
		return __real_shutdown(fd, how);
	if (how != SHUT_WR)
		sim_fail("shutdown(2) of the receiving side");
	begin(CALL_OTHER, f->sock);
	err = tcp_shutdown(f->sock);
	trace("shutdown", (int)f->sock->id, err, 0);
	return (int)end(CALL_OTHER, f->sock, err);
}

WRAP(int, ioctl, int fd, unsigned long request, ...)
{
	struct sim_file *f = sim_file(fd);
	va_list ap;
	int *arg;

	va_start(ap, request);
	arg = va_arg(ap, int *);
	va_end(ap);
	if (!f)
		return __real_ioctl(fd, request, arg);
	begin(CALL_OTHER, f->sock);
	if (request == SIOCOUTQ)
		*arg = tcp_unsent(f->sock);
	else if (request == SIOCATMARK)
		*arg = tcp_at_mark(f->sock);
	else if (request == SIOCINQ)
		*arg = (int)(f->sock->arrived - f->sock->copied);
	else
		sim_fail("an unknown ioctl(2)");
	trace("ioctl", (int)f->sock->id, (long)request, *arg);
	return (int)end(CALL_OTHER, f->sock, 0);
}

WRAP(int, setsockopt, int fd, int level, int option, const void *value,
     socklen_t len)
{
	struct sim_file *f = sim_file(fd);

	if (!f)
		return __real_setsockopt(fd, level, option, value, len);
	if (level == SOL_SOCKET && option == SO_LINGER)
		f->sock->linger0 = ((const struct linger *)value)->l_onoff;
	else if (level == SOL_SOCKET && option == SO_OOBINLINE)
		f->sock->oobinline = *(const int *)value;
	else if (level != IPPROTO_TCP || option != TCP_NODELAY)
		sim_fail("an unknown socket option");
	return 0;
}

WRAP(int, getsockopt, int fd, int level, int option, void *value, socklen_t *len)
{
	struct sim_file *f = sim_file(fd);
	struct tcp_info info = { 0 };

	if (!f)
		return __real_getsockopt(fd, level, option, value, len);
	if (level == SOL_SOCKET && option == SO_PROTOCOL) {
		*(int *)value = IPPROTO_TCP;
		return 0;
	}
	if (level != IPPROTO_TCP || option != TCP_INFO || *len < sizeof(info))
		sim_fail("an unknown socket option");
	begin(CALL_OTHER, f->sock);
	info.tcpi_bytes_received = f->sock->arrived + f->sock->fin_in;
	memcpy(value, &info, sizeof(info));
	*len = sizeof(info);
	return (int)end(CALL_OTHER, f->sock, 0);
}

WRAP(int, poll, struct pollfd *p, nfds_t n, int timeout)
{
	struct sim_file *f = n ? sim_file(p->fd) : NULL;
	int found = 0;

	if (!f)
		return __real_poll(p, n, timeout);
	if (timeout)
		sim_fail("poll(2) that waits");
	begin(CALL_OTHER, f->sock);
	for (nfds_t i = 0; i < n; i++, p++) {
		f = sim_file(p->fd);
		p->revents = (short)(sim_poll(f) & ((uint32_t)p->events |
						    EPOLLERR | EPOLLHUP));
		trace("poll", f->sock ? (int)f->sock->id : -1, p->revents, 0);
		found += p->revents != 0;
	}
	end(CALL_OTHER, f->sock, 0);
	return found;
}

WRAP(int, pipe2, int fd[2], int flags)
{
	int err;

	if (!sim.on)
		return __real_pipe2(fd, flags);
	if (flags != (O_NONBLOCK | O_CLOEXEC))
		sim_fail("pipe2(2) with flags %#x", flags);
	err = begin(CALL_PIPE, NULL);
	return (int)end(CALL_PIPE, NULL, err ? -err : sim_pipe_new(fd));
}

static int sim_fcntl(struct sim_file *f, int cmd, int arg)
{
	int err;

	if (f->kind != SIM_PIPE_IN && f->kind != SIM_PIPE_OUT)
		sim_fail("fcntl(2) of what is no pipe");
	if (cmd == F_GETPIPE_SZ)
		return (int)f->pipe->size;
	if (cmd != F_SETPIPE_SZ)
		sim_fail("an unknown fcntl(2)");
	err = begin(CALL_GROW, NULL);
	if (!err)
		f->pipe->size = (unsigned)arg;
	else if (err == EPERM) /* past the quota: two slots (K12) */
		f->pipe->size = 2 * SIM_PAGE;
	return (int)end(CALL_GROW, NULL, err ? -err : arg);
}

#define WRAP_FCNTL(name)                                \
	WRAP(int, name, int fd, int cmd, ...)           \
	{                                               \
		struct sim_file *f = sim_file(fd);      \
		va_list ap;                             \
		long arg;                               \
                                                        \
		va_start(ap, cmd);                      \
		arg = va_arg(ap, long);                 \
		va_end(ap);                             \
		return f ? sim_fcntl(f, cmd, (int)arg)  \
			 : __real_##name(fd, cmd, arg); \
	}

WRAP_FCNTL(fcntl)
WRAP_FCNTL(fcntl64)

WRAP(int, close, int fd)
{
	struct sim_file *f = sim_file(fd);

	if (!f)
		return __real_close(fd);
	if (f->kind == SIM_SOCK)
		tcp_close(f->sock);
	if (f->pipe)
		sim_pipe_close(f->pipe);
	sim_unwatch(f);
	f->kind = SIM_CLOSED;
	sim.open--;
	return 0;
}

WRAP(int, epoll_create1, int flags)
{
	return sim.on ? sim_open(SIM_EPOLL)->fd : __real_epoll_create1(flags);
}

WRAP(int, eventfd, unsigned n, int flags)
{
	return sim.on ? sim_open(SIM_EVENT)->fd : __real_eventfd(n, flags);
}

WRAP(int, timerfd_create, int clock, int flags)
{
	return sim.on ? sim_open(SIM_TIMER)->fd
		      : __real_timerfd_create(clock, flags);
}

WRAP(int, epoll_ctl, int ep, int op, int fd, struct epoll_event *ev)
{
	int ret;

	if (!sim_file(ep))
		return __real_epoll_ctl(ep, op, fd, ev);
	ret = sim_epoll_ctl(op, sim_file(fd), ev);
	errno = -ret;
	return ret ? -1 : 0;
}

WRAP(int, epoll_wait, int ep, struct epoll_event *ev, int max, int timeout)
{
	int err;

	if (!sim_file(ep))
		return __real_epoll_wait(ep, ev, max, timeout);
	err = begin(CALL_WAIT, NULL);
	if (!err)
		return sim_epoll_wait(ev, max);
	errno = err;
	return -1;
}

WRAP(int, timerfd_settime, int fd, int flags, const struct itimerspec *when,
     struct itimerspec *old)
{
	struct sim_file *f = sim_file(fd);
	int err;

	if (!f)
		return __real_timerfd_settime(fd, flags, when, old);
	if (flags != TFD_TIMER_ABSTIME)
		sim_fail("a deadline that is not absolute");
	err = begin(CALL_TIMER, NULL);
	if (err) {
		errno = err;
		return -1;
	}
	f->n = (uint64_t)when->it_value.tv_sec * 1000000000 +
	       (uint64_t)when->it_value.tv_nsec;
	f->mask = 0;
	sim_wake(f, EPOLLIN);
	return 0;
}

WRAP(int, clock_gettime, clockid_t clock, struct timespec *ts)
{
	if (!sim.on || clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, ts);
	ts->tv_sec = (time_t)(sim.now_ns / 1000000000);
	ts->tv_nsec = (long)(sim.now_ns % 1000000000);
	return 0;
}

/* Memory fails only in a turn, where it is the pump that asks. */
static bool no_memory(void)
{
	if (!sim.in_turn || !sim_fault(CALL_MEMORY, NULL))
		return false;
	errno = ENOMEM;
	return true;
}

WRAP(void *, calloc, size_t n, size_t size)
{
	return no_memory() ? NULL : __real_calloc(n, size);
}

WRAP(void *, realloc, void *p, size_t n)
{
	return no_memory() ? NULL : __real_realloc(p, n);
}

/* Of buffers, which are many and small here: malloc(3) is quicker, and lets
 * sanitizers look on. */
static void *map(size_t n)
{
	void *at = no_memory() ? NULL : malloc(n);

	return at ? at : MAP_FAILED;
}

WRAP(void *, mmap, void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	return map(n);
}

WRAP(void *, mmap64, void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	return map(n);
}

WRAP(int, munmap, void *at, size_t n)
{
	free(at);
	return 0;
}
