/* SPDX-License-Identifier: MIT */
/*
 * K45: what an MPTCP socket lacks of a TCP socket, and what it has. A listener
 * that speaks MPTCP accepts a plain TCP socket from a client that does not.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernel/fixture.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static int new_mptcp(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP);
}

static int listen_mptcp(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = new_mptcp();

	ck_assert_int_ge(fd, 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(fd, 10), 0);
	return fd;
}

/* As fixture_pair(), but the client of protocol @protocol. */
static void mptcp_pair(int fd[2], int protocol)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int l = listen_mptcp();

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons(tcp_port(l));
	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, protocol);
	ck_assert_int_ge(fd[0], 0);
	ck_assert_int_eq(connect(fd[0], (struct sockaddr *)&a, sizeof(a)), 0);
	fd[1] = tcp_accept(l, SOON_MS);
	ck_assert_int_ge(fd[1], 0);
	peer_nodelay(fd[0]);
	peer_nonblock(fd[1]);
	close(l);
}

static int protocol_of(int fd)
{
	socklen_t len = sizeof(int);
	int protocol;

	ck_assert_int_eq(
		getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len), 0);
	return protocol;
}

static int set_oobinline(int fd)
{
	int one = 1;

	return setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &one, sizeof(one))
		       ? -errno
		       : 0;
}

START_TEST(an_mptcp_socket_refuses_oobinline_and_has_no_mark)
{
	int fd[2], l = listen_mptcp(), at;

	ck_assert_int_eq(set_oobinline(l), -EOPNOTSUPP);
	close(l);
	mptcp_pair(fd, IPPROTO_MPTCP);
	ck_assert_int_eq(protocol_of(fd[1]), IPPROTO_MPTCP);
	ck_assert_int_eq(set_oobinline(fd[1]), -EOPNOTSUPP);
	ck_assert_int_eq(ioctl(fd[1], SIOCATMARK, &at), -1);
	support_note("SIOCATMARK: error %d", errno);
	fixture_close(fd);
}
END_TEST

/* By the kind of client one listener yields two kinds of socket. */
START_TEST(a_client_of_plain_tcp_is_accepted_as_plain_tcp)
{
	int fd[2];

	mptcp_pair(fd, IPPROTO_TCP);
	ck_assert_int_eq(protocol_of(fd[1]), IPPROTO_TCP);
	ck_assert_int_eq(set_oobinline(fd[1]), 0);
	fixture_close(fd);
}
END_TEST

/* SIOCOUTQ has bytes that the peer's kernel has not acknowledged. */
START_TEST(siocoutq_of_an_mptcp_socket_ends_at_0)
{
	int fd[2];
	size_t sent;

	mptcp_pair(fd, IPPROTO_MPTCP);
	sent = fill_socket(fd[1]);
	ck_assert_int_gt(peer_unacked(fd[1]), 0);
	peer_gets(fd[0], sent);
	await_acked(fd[1]);
	fixture_close(fd);
}
END_TEST

/* 0 where TCP_INFO is not supported. */
static uint64_t bytes_received(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		ck_assert_int_eq(errno, EOPNOTSUPP);
	return info.tcpi_bytes_received;
}

/* TCP_INFO is that of one subflow, and the end of the stream is not its FIN.
 * For TCP see fin_counts_as_a_byte_received_and_a_reset_does_not in reset.c. */
START_TEST(tcp_info_of_an_mptcp_socket_does_not_count_the_fin)
{
	uint64_t before;
	char c;
	int fd[2];

	mptcp_pair(fd, IPPROTO_MPTCP);
	peer_says(fd[0], "x", 1);
	ck_assert_int_eq(peer_recv_all(fd[1], &c, 1, SOON_MS), 1);
	before = bytes_received(fd[1]);
	support_note("1 byte read, %d counted", (int)before);
	shutdown(fd[0], SHUT_WR);
	ck_assert_int_eq(peer_expect_eof(fd[1], SOON_MS), 0);
	ck_assert_uint_eq(bytes_received(fd[1]), before);
	fixture_close(fd);
}
END_TEST

START_TEST(splice_moves_bytes_of_an_mptcp_socket_both_ways)
{
	int in[2], out[2], p[2];

	mptcp_pair(in, IPPROTO_MPTCP);
	mptcp_pair(out, IPPROTO_MPTCP);
	fixture_pipe(p, 65536);
	ck_assert_int_eq(splice_in(in[1], p, 100), -EAGAIN);
	peer_says(in[0], "hello", 5);
	ck_assert_int_gt(peer_wait(in[1], POLLIN, SOON_MS), 0);
	ck_assert_int_eq(splice_in(in[1], p, 100), 5);
	ck_assert_int_eq(splice_out(p, out[1], 5), 5);
	peer_gets(out[0], 5);
	shutdown(in[0], SHUT_WR);
	ck_assert_int_gt(peer_wait(in[1], POLLRDHUP, SOON_MS), 0);
	ck_assert_int_eq(splice_in(in[1], p, 100), 0);
	fixture_close(p);
	fixture_close(out);
	fixture_close(in);
}
END_TEST

/* Linux before 5.17 took any option and ignored it, and had no SIOCOUTQ. */
static int is_older(int major, int minor)
{
	struct utsname name;
	int a, b;

	return uname(&name) || sscanf(name.release, "%d.%d", &a, &b) != 2 ||
	       a < major || (a == major && b < minor);
}

int main(void)
{
	Suite *s;
	TCase *tc;
	int fd = new_mptcp();

	if (fd < 0 || is_older(5, 17))
		support_skip_all("no MPTCP here, or older than Linux 5.17");
	close(fd);
	s = suite_create("mptcp");
	tc = support_case(s, "kernel");
	tcase_add_test(tc, an_mptcp_socket_refuses_oobinline_and_has_no_mark);
	tcase_add_test(tc, a_client_of_plain_tcp_is_accepted_as_plain_tcp);
	tcase_add_test(tc, siocoutq_of_an_mptcp_socket_ends_at_0);
	tcase_add_test(tc, tcp_info_of_an_mptcp_socket_does_not_count_the_fin);
	tcase_add_test(tc, splice_moves_bytes_of_an_mptcp_socket_both_ways);
	return support_main(s);
}
