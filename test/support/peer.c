/* SPDX-License-Identifier: MIT */
/*
 * The other end of a TCP connection, as a test plays it.
 */
#include "support/peer.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static void address_set(union address *a, const char *ip, uint16_t port)
{
	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, ip, &a->in.sin_addr) == 1) {
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons(port);
	} else if (inet_pton(AF_INET6, ip, &a->in6.sin6_addr) == 1) {
		a->in6.sin6_family = AF_INET6;
		a->in6.sin6_port = htons(port);
	} else {
		ck_abort_msg("not an address: %s", ip);
	}
}

static socklen_t address_len(const union address *a)
{
	return a->sa.sa_family == AF_INET ? sizeof(a->in) : sizeof(a->in6);
}

static void set_option(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		ck_abort_msg("setsockopt(%d, %d, %d): %m", level, name, value);
}

int tcp_listen(const char *ip, uint16_t port)
{
	union address a;
	int fd;

	address_set(&a, ip, port);
	fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		ck_abort_msg("socket for %s: %m", ip);
	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(fd, &a.sa, address_len(&a)) || listen(fd, 128))
		ck_abort_msg("listen on %s port %u: %m", ip, port);
	return fd;
}

uint16_t tcp_port(int fd)
{
	union address a;
	socklen_t len = sizeof(a);

	if (getsockname(fd, &a.sa, &len))
		ck_abort_msg("getsockname: %m");
	return ntohs(a.sa.sa_family == AF_INET ? a.in.sin_port : a.in6.sin6_port);
}

int tcp_connect(const char *ip, uint16_t port)
{
	union address a;
	int fd, err;

	address_set(&a, ip, port);
	fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, &a.sa, address_len(&a))) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int tcp_accept(int listener, int timeout_ms)
{
	int fd = peer_wait(listener, POLLIN, timeout_ms);

	if (fd < 0)
		return fd;
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void pair(int out[2], const char *ip)
{
	int listener = tcp_listen(ip, 0);

	out[0] = tcp_connect(ip, tcp_port(listener));
	out[1] = tcp_accept(listener, 5000);
	if (out[0] < 0 || out[1] < 0)
		ck_abort_msg("no pair over %s: connect %d, accept %d", ip,
			     out[0], out[1]);
	close(listener);
}

void tcp_pair(int out[2])
{
	pair(out, "127.0.0.1");
}

void tcp_pair6(int out[2])
{
	pair(out, "::1");
}

void peer_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		ck_abort_msg("O_NONBLOCK: %m");
}

void peer_nodelay(int fd)
{
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

void peer_small_buffers(int fd, int bytes)
{
	/* the kernel doubles what it is given */
	set_option(fd, SOL_SOCKET, SO_RCVBUF, bytes / 2);
	set_option(fd, SOL_SOCKET, SO_SNDBUF, bytes / 2);
}

int peer_wait(int fd, short events, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	int64_t end = now_ms() + timeout_ms;
	int r;

	do {
		int64_t left = end - now_ms();

		r = poll(&p, 1, left > 0 ? (int)left : 0);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	return r ? p.revents : -ETIMEDOUT;
}

/* Waits until @end. Returns 0 or a negative errno. */
static int wait_until(int fd, short events, int64_t end)
{
	int64_t left = end - now_ms();
	int r = peer_wait(fd, events, left > 0 ? (int)left : 0);

	return r < 0 ? r : 0;
}

int peer_send_all(int fd, const void *buf, size_t n, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms;
	const char *p = buf;

	while (n) {
		ssize_t k = send(fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		int r;

		if (k < 0 && errno != EAGAIN)
			return -errno;
		if (k < 0) {
			r = wait_until(fd, POLLOUT, end);
			if (r)
				return r;
			continue;
		}
		p += k;
		n -= k;
	}
	return 0;
}

/* One recv() as soon as there is something; as recv(), with negative errno. */
static ssize_t recv_some(int fd, void *buf, size_t n, int64_t end)
{
	for (;;) {
		ssize_t k = recv(fd, buf, n, MSG_DONTWAIT);
		int r;

		if (k >= 0)
			return k;
		if (errno != EAGAIN)
			return -errno;
		r = wait_until(fd, POLLIN, end);
		if (r)
			return r;
	}
}

ssize_t peer_recv_all(int fd, void *buf, size_t n, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms;
	size_t got = 0;

	while (got < n) {
		ssize_t k = recv_some(fd, (char *)buf + got, n - got, end);

		if (k < 0)
			return k;
		if (!k)
			break;
		got += k;
	}
	return got;
}

int64_t peer_drain(int fd, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms, sum = 0;
	char buf[65536];
	ssize_t k;

	while ((k = recv_some(fd, buf, sizeof(buf), end)) > 0)
		sum += k;
	return k < 0 ? k : sum;
}

/* -EBADMSG for a byte, -ENODATA for EOF, else what recv() says. */
static int next_thing(int fd, int timeout_ms)
{
	char byte;
	ssize_t k = recv_some(fd, &byte, 1, now_ms() + timeout_ms);

	if (k < 0)
		return k;
	return k ? -EBADMSG : -ENODATA;
}

int peer_expect_eof(int fd, int timeout_ms)
{
	int r = next_thing(fd, timeout_ms);

	return r == -ENODATA ? 0 : r;
}

int peer_expect_reset(int fd, int timeout_ms)
{
	int r = next_thing(fd, timeout_ms);

	return r == -ECONNRESET ? 0 : r;
}

int peer_expect_silence(int fd, int ms)
{
	int r = peer_wait(fd, POLLIN, ms);
	ssize_t k;
	char byte;

	if (r == -ETIMEDOUT)
		return 0;
	if (r < 0)
		return r;
	k = recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
	if (k < 0)
		return -errno;
	return k ? -EBADMSG : -ENODATA;
}

void peer_reset(int fd)
{
	struct linger l = { .l_onoff = 1, .l_linger = 0 };

	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)))
		ck_abort_msg("SO_LINGER: %m");
	close(fd);
}

static int ask(int fd, unsigned long what)
{
	int n;

	if (ioctl(fd, what, &n))
		ck_abort_msg("ioctl(%#lx): %m", what);
	return n;
}

int peer_unacked(int fd)
{
	return ask(fd, SIOCOUTQ);
}

int peer_unread(int fd)
{
	return ask(fd, SIOCINQ);
}
