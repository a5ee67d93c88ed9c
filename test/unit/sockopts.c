/* SPDX-License-Identifier: MIT */
/*
 * Settings of sockets: they are set, passed on by a listening socket (K35), and
 * what the kernel makes smaller is told.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/sock.h"
#include "support/peer.h"
#include "support/suite.h"

static const struct sockopts all = {
	.user_timeout_ms = 12345,
	.rcvbuf = 40000,
	.sndbuf = 50000,
	.notsent_lowat = 60000,
	.congestion = "reno",
};

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	ck_assert_int_eq(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

/* The kernel keeps twice the room, for its own overhead. */
static void expect_tuned(int fd)
{
	char name[16] = "";
	socklen_t len = sizeof(name);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 12345);
	ck_assert_int_eq(option(fd, SOL_SOCKET, SO_RCVBUF), 80000);
	ck_assert_int_eq(option(fd, SOL_SOCKET, SO_SNDBUF), 100000);
	ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 60000);
	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len),
			 0);
	ck_assert_str_eq(name, "reno");
}

START_TEST(all_is_set_on_both_sockets_of_a_connection)
{
	struct addr at, from, to;
	socklen_t len = sizeof(to);
	int listener, fd[2];

	ck_assert_int_eq(addr_parse_ip(&at, "127.0.0.1", 0), 0);
	listener = sock_listen(&at, 5, &all);
	expect_tuned(listener);
	ck_assert_int_eq(getsockname(listener, &to.sa, &len), 0);
	fd[0] = sock_connect(&to, &all);
	expect_tuned(fd[0]);
	ck_assert_int_gt(peer_wait(listener, POLLIN, 5000), 0);
	fd[1] = sock_accept(listener, &from);
	expect_tuned(fd[1]);
	close(fd[0]);
	close(fd[1]);
	close(listener);
}
END_TEST

START_TEST(keepalive_of_0_is_left_as_it_is)
{
	static const struct keepalive none;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(sockopts_set_keepalive(fd, &none), 0);
	ck_assert_int_eq(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
	close(fd);
}
END_TEST

START_TEST(keepalive_is_set_apart)
{
	struct keepalive k = { 100, 20, 3 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(sockopts_set_keepalive(fd, &k), 0);
	ck_assert_int_ne(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
	ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 100);
	ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 20);
	ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
	close(fd);
}
END_TEST

START_TEST(nothing_asked_for_changes_nothing)
{
	static const struct sockopts none;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rcvbuf = option(fd, SOL_SOCKET, SO_RCVBUF);
	int sndbuf = option(fd, SOL_SOCKET, SO_SNDBUF);

	ck_assert_int_eq(sockopts_set(fd, &none), 0);
	ck_assert_int_eq(option(fd, SOL_SOCKET, SO_RCVBUF), rcvbuf);
	ck_assert_int_eq(option(fd, SOL_SOCKET, SO_SNDBUF), sndbuf);
	ck_assert_int_eq(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
	close(fd);
}
END_TEST

START_TEST(what_the_kernel_makes_smaller_is_told)
{
	struct sockopts wished = all, got;
	int err;

	ck_assert_ptr_null(sockopts_try(&wished, &got, &err));
	ck_assert_int_eq(got.rcvbuf, wished.rcvbuf);
	ck_assert_int_eq(got.sndbuf, wished.sndbuf);
	wished.rcvbuf = wished.sndbuf = 1 << 30; /* above any sane limit */
	ck_assert_ptr_null(sockopts_try(&wished, &got, &err));
	ck_assert_int_lt(got.rcvbuf, wished.rcvbuf);
	ck_assert_int_lt(got.sndbuf, wished.sndbuf);
	ck_assert_int_gt(got.rcvbuf, 0);
	ck_assert_int_gt(got.sndbuf, 0);
}
END_TEST

START_TEST(what_the_kernel_refuses_is_named)
{
	struct sockopts wished = { .congestion = "no-such-thing" }, got;
	int err;

	ck_assert_str_eq(sockopts_try(&wished, &got, &err), "congestion");
	ck_assert_int_eq(err, -ENOENT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tune");
	TCase *tc = support_case(s, "tune");

	tcase_add_test(tc, all_is_set_on_both_sockets_of_a_connection);
	tcase_add_test(tc, keepalive_is_set_apart);
	tcase_add_test(tc, keepalive_of_0_is_left_as_it_is);
	tcase_add_test(tc, nothing_asked_for_changes_nothing);
	tcase_add_test(tc, what_the_kernel_makes_smaller_is_told);
	tcase_add_test(tc, what_the_kernel_refuses_is_named);
	return support_main(s);
}
