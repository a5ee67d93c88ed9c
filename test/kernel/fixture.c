/* SPDX-License-Identifier: MIT */
/*
 * What the kernel tests have in common.
 */
#include "kernel/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

void fixture_pair(int fd[2])
{
	tcp_pair(fd);
	peer_nodelay(fd[0]);
	peer_nonblock(fd[1]);
}

void fixture_pipe(int pipe[2], int size)
{
	ck_assert_int_eq(pipe2(pipe, O_NONBLOCK | O_CLOEXEC), 0);
	if (size)
		ck_assert_int_eq(fcntl(pipe[1], F_SETPIPE_SZ, size), size);
}

void fixture_close(int pair[2])
{
	close(pair[0]);
	close(pair[1]);
}

int edge_watch(int fd, uint32_t mask)
{
	struct epoll_event e = { .events = mask, .data.fd = fd };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	ck_assert_int_ge(ep, 0);
	ck_assert_int_eq(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e), 0);
	return ep;
}

uint32_t edge_next(int ep, int timeout_ms)
{
	struct epoll_event e;

	return epoll_wait(ep, &e, 1, timeout_ms) == 1 ? e.events : 0;
}

uint32_t edge_until(int ep, uint32_t bits)
{
	int64_t end = now_ms() + SOON_MS;
	uint32_t seen = 0;

	while ((seen & bits) != bits) {
		int64_t left = end - now_ms();

		ck_assert_msg(left > 0, "wanted %#x, saw %#x", bits, seen);
		seen |= edge_next(ep, left);
	}
	return seen;
}

static ssize_t splice_now(int from, int to, size_t n)
{
	ssize_t k = splice(from, NULL, to, NULL, n, SPLICE_F_NONBLOCK);

	return k < 0 ? -errno : k;
}

ssize_t splice_in(int fd, int pipe[2], size_t n)
{
	return splice_now(fd, pipe[1], n);
}

ssize_t splice_out(int pipe[2], int fd, size_t n)
{
	return splice_now(pipe[0], fd, n);
}

ssize_t recv_now(int fd, void *buf, size_t n)
{
	ssize_t k = recv(fd, buf, n, MSG_DONTWAIT);

	return k < 0 ? -errno : k;
}

ssize_t send_now(int fd, const void *buf, size_t n)
{
	ssize_t k = send(fd, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);

	return k < 0 ? -errno : k;
}

void peer_says(int fd, const void *buf, size_t n)
{
	ck_assert_int_eq(peer_send_all(fd, buf, n, SOON_MS), 0);
}

void peer_gets(int fd, size_t n)
{
	char buf[65536];

	while (n) {
		size_t k = n < sizeof(buf) ? n : sizeof(buf);

		ck_assert_int_eq(peer_recv_all(fd, buf, k, SOON_MS), k);
		n -= k;
	}
}

void await_unread(int fd, int n)
{
	int64_t end = now_ms() + SOON_MS;

	while (peer_unread(fd) != n) {
		ck_assert_msg(now_ms() < end, "%d bytes to read, not %d",
			      peer_unread(fd), n);
		sleep_us(100);
	}
}

void await_acked(int fd)
{
	int64_t end = now_ms() + SOON_MS;

	while (peer_unacked(fd)) {
		ck_assert_int_lt(now_ms(), end);
		sleep_us(100);
	}
}

void await_fin(int fd)
{
	ck_assert_int_gt(peer_wait(fd, POLLRDHUP, SOON_MS), 0);
}

void await_reset(int fd)
{
	int64_t end = now_ms() + SOON_MS;

	/* HUP need not be asked for, and may come a moment after ERR */
	for (int seen = 0; seen <= 0 || !(seen & POLLHUP);) {
		ck_assert_int_lt(now_ms(), end);
		seen = peer_wait(fd, 0, 100);
	}
}

size_t read_to_reset(int fd)
{
	char buf[65536];
	size_t sum = 0;
	ssize_t n;

	await_reset(fd);
	while ((n = recv_now(fd, buf, sizeof(buf))) > 0)
		sum += n;
	ck_assert_int_eq(n, -ECONNRESET);
	return sum;
}

size_t fill_slots(int fd[2], int pipe[2], size_t n)
{
	char buf[4096] = { 0 };

	ck_assert_uint_le(n, sizeof(buf));
	for (size_t held = 0; held < 4 << 20; held += n) {
		ssize_t k;

		peer_says(fd[0], buf, n);
		await_unread(fd[1], n);
		k = splice_in(fd[1], pipe, n);
		if (k == -EAGAIN)
			return held;
		ck_assert_int_eq(k, n);
	}
	ck_abort_msg("the pipe is never full");
}

size_t fill_socket(int fd)
{
	static const char buf[65536];
	size_t sum = 0, before;

	/*
	 * POLLOUT asks for a third of the buffer free, send() for any; where
	 * many bytes have no room, a few may have.
	 */
	do {
		before = sum;
		for (size_t n = sizeof(buf); n; n /= 2) {
			ssize_t k;

			while ((k = send_now(fd, buf, n)) > 0)
				sum += k;
			ck_assert_int_eq(k, -EAGAIN);
		}
		sleep_ms(NEVER_MS);
	} while (sum > before);
	return sum;
}
