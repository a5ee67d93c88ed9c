/* SPDX-License-Identifier: MIT */
/*
 * A listening socket that is closed, shut down, replaced or shared, and what
 * becomes of the connections in its queue.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel/fixture.h"

#define CLIENTS 32

static void set_option(int fd, int level, int name, int value)
{
	ck_assert_int_eq(setsockopt(fd, level, name, &value, sizeof(value)), 0);
}

/* Listens at @port of 127.0.0.1 beside others, 0 for any; nonblocking. */
static int listen_shared(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(fd, 2 * CLIENTS), 0);
	return fd;
}

static int listen_nonblock(void)
{
	int fd = tcp_listen("127.0.0.1", 0);

	peer_nonblock(fd);
	return fd;
}

static int connect_to(int listener)
{
	int fd = tcp_connect("127.0.0.1", tcp_port(listener));

	ck_assert_int_ge(fd, 0);
	return fd;
}

static int accept_now(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Whether connections move to another listener, Linux 5.14 and later. */
static int connections_migrate(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/tcp_migrate_req", "r");
	int on = 0;

	if (!f)
		return 0;
	ck_assert_int_eq(fscanf(f, "%d", &on), 1);
	fclose(f);
	return on;
}

static int count_reset(const int client[CLIENTS])
{
	int n = 0;

	for (int i = 0; i < CLIENTS; i++) {
		struct pollfd p = { .fd = client[i] };

		n += poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
	}
	return n;
}

/* K23. A hash of the ports chooses the listener: that all 32 connections are on
 * one of the two is too improbable to happen. */
START_TEST(closing_one_of_two_listeners_resets_the_connections_in_its_queue)
{
	int l[2], client[CLIENTS], accepted[CLIENTS], n = 0, fd;
	int64_t end;

	if (connections_migrate()) {
		support_skip("net.ipv4.tcp_migrate_req is on");
		return;
	}
	l[0] = listen_shared(0);
	l[1] = listen_shared(tcp_port(l[0]));
	for (int i = 0; i < CLIENTS; i++)
		client[i] = connect_to(l[0]);
	close(l[1]);
	/* each is reset, or comes out of the queue that is left */
	end = now_ms() + SOON_MS;
	while (n + count_reset(client) < CLIENTS) {
		ck_assert_int_lt(now_ms(), end);
		fd = accept_now(l[0]);
		if (fd >= 0)
			accepted[n++] = fd;
		else
			sleep_us(100);
	}
	support_note("%d of %d reset", CLIENTS - n, CLIENTS);
	ck_assert_int_gt(n, 0);
	ck_assert_int_lt(n, CLIENTS);
	while (n)
		close(accepted[--n]);
	for (int i = 0; i < CLIENTS; i++)
		close(client[i]);
	close(l[0]);
}
END_TEST

/* K24 */
START_TEST(an_exclusive_watch_refuses_rdhup)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLEXCLUSIVE };
	int l = listen_nonblock(), ep = epoll_create1(EPOLL_CLOEXEC);

	ck_assert_int_ge(ep, 0);
	e.events |= EPOLLRDHUP;
	ck_assert_int_eq(epoll_ctl(ep, EPOLL_CTL_ADD, l, &e), -1);
	ck_assert_int_eq(errno, EINVAL);
	e.events &= ~(uint32_t)EPOLLRDHUP;
	ck_assert_int_eq(epoll_ctl(ep, EPOLL_CTL_ADD, l, &e), 0);
	close(ep);
	close(l);
}
END_TEST

/* K28. The minute is how long it would be held back. */
START_TEST(defer_accept_hides_a_client_that_waits_for_the_server_to_begin)
{
	int l = listen_nonblock(), client, fd;

	set_option(l, IPPROTO_TCP, TCP_DEFER_ACCEPT, 60);
	client = connect_to(l);
	ck_assert_int_eq(peer_wait(l, POLLIN, NEVER_MS), -ETIMEDOUT);
	ck_assert_int_eq(accept_now(l), -EAGAIN);
	peer_says(client, "x", 1);
	ck_assert_int_eq(peer_wait(l, POLLIN, SOON_MS), POLLIN);
	fd = accept_now(l);
	ck_assert_int_ge(fd, 0);
	close(fd);
	close(client);
	close(l);
}
END_TEST

/* K40. EPOLLHUP stays, so that a level-triggered watch spins. */
START_TEST(a_listener_that_was_shut_down_refuses_and_hangs_up)
{
	int l = listen_nonblock(), client = connect_to(l), edge, level;
	uint32_t seen;

	ck_assert_int_eq(peer_wait(l, POLLIN, SOON_MS), POLLIN);
	edge = edge_watch(l, EPOLLIN | EPOLLET);
	level = edge_watch(l, EPOLLIN);
	ck_assert_uint_eq(edge_next(edge, SOON_MS), EPOLLIN);
	ck_assert_int_eq(shutdown(l, _i ? SHUT_RDWR : SHUT_RD), 0);
	seen = edge_until(edge, EPOLLHUP);
	support_note("epoll says %#x", seen);
	for (int i = 0; i < 3; i++)
		ck_assert(edge_next(level, SOON_MS) & EPOLLHUP);
	ck_assert_int_eq(accept_now(l), -EINVAL);
	ck_assert_int_eq(peer_expect_reset(client, SOON_MS), 0);
	ck_assert_int_eq(tcp_connect("127.0.0.1", tcp_port(l)), -ECONNREFUSED);
	close(edge);
	close(level);
	close(client);
	close(l);
}
END_TEST

/* K40. SHUT_WR alone does nothing; and the descriptor is still bound. */
START_TEST(a_listener_that_was_shut_down_listens_again_after_listen)
{
	int l = listen_nonblock(), client, fd;

	ck_assert_int_eq(shutdown(l, SHUT_WR), 0);
	client = connect_to(l);
	fd = tcp_accept(l, SOON_MS);
	ck_assert_int_ge(fd, 0);
	close(fd);
	close(client);

	ck_assert_int_eq(shutdown(l, SHUT_RD), 0);
	ck_assert_int_eq(listen(l, 10), 0);
	client = connect_to(l);
	fd = tcp_accept(l, SOON_MS);
	ck_assert_int_ge(fd, 0);
	close(fd);
	close(client);
	close(l);
}
END_TEST

/* K41. A listening socket can be replaced under its number. If a duplicate of
 * the old one lives, its registration lives on, too (K33). */
START_TEST(dup2_over_a_watched_listener_ends_its_watch)
{
	struct epoll_event e = { .events = EPOLLIN };
	int old = listen_nonblock(), ep = edge_watch(old, EPOLLIN), client;
	int fresh = listen_nonblock();

	ck_assert_int_eq(shutdown(old, SHUT_RDWR), 0);
	edge_until(ep, EPOLLHUP);
	ck_assert_int_eq(dup2(fresh, old), old);
	close(fresh);
	client = connect_to(old);
	ck_assert_int_eq(peer_wait(old, POLLIN, SOON_MS), POLLIN);
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	ck_assert_int_eq(epoll_ctl(ep, EPOLL_CTL_MOD, old, &e), -1);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(epoll_ctl(ep, EPOLL_CTL_ADD, old, &e), 0);
	ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLIN);
	close(ep);
	close(client);
	close(old);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("listen");
	TCase *tc = support_case(s, "kernel");

	tcase_add_test(
		tc,
		closing_one_of_two_listeners_resets_the_connections_in_its_queue);
	tcase_add_test(tc, an_exclusive_watch_refuses_rdhup);
	tcase_add_test(
		tc,
		defer_accept_hides_a_client_that_waits_for_the_server_to_begin);
	tcase_add_loop_test(
		tc, a_listener_that_was_shut_down_refuses_and_hangs_up, 0, 2);
	tcase_add_test(tc,
		       a_listener_that_was_shut_down_listens_again_after_listen);
	tcase_add_test(tc, dup2_over_a_watched_listener_ends_its_watch);
	return support_main(s);
}
