/* SPDX-License-Identifier: MIT */
/*
 * TCP sockets, one call at a time: what each promises.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/sock.h"
#include "support/peer.h"
#include "support/suite.h"

static const struct sockopts plain;

static const char *const loopback[] = { "127.0.0.1", "::1" };

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	ck_assert_int_eq(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

/* What every socket has from the start. */
static void expect_prepared(int fd)
{
	ck_assert_int_ge(fd, 0);
	ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_ne(option(fd, IPPROTO_TCP, TCP_NODELAY), 0);
	ck_assert_int_ne(option(fd, SOL_SOCKET, SO_OOBINLINE), 0);
}

static void addr_of(int fd, struct addr *a)
{
	socklen_t len = sizeof(*a);

	ck_assert_int_eq(getsockname(fd, &a->sa, &len), 0);
}

/* _i is the family. K35: what is accepted has inherited the options. */
START_TEST(listen_connect_and_accept_make_a_prepared_pair)
{
	struct addr at, from, to;
	int listener, fd[2];

	ck_assert_int_eq(addr_parse_ip(&at, loopback[_i], 0), 0);
	listener = sock_listen(&at, 5, &plain);
	expect_prepared(listener);
	ck_assert_int_eq(sock_accept(listener, &from), -EAGAIN);
	addr_of(listener, &to);
	fd[0] = sock_connect(&to, &plain);
	expect_prepared(fd[0]);
	ck_assert_int_gt(peer_wait(fd[0], POLLOUT, SOON_MS), 0);
	ck_assert_int_eq(sock_connected(fd[0]), 0);
	ck_assert(!sock_is_self(fd[0], &to));
	ck_assert_int_gt(peer_wait(listener, POLLIN, SOON_MS), 0);
	fd[1] = sock_accept(listener, &from);
	expect_prepared(fd[1]);
	addr_of(fd[0], &at);
	ck_assert(addr_equal(&at, &from));

	ck_assert_int_eq(sock_listen(&to, 5, &plain), -EADDRINUSE);
	close(fd[0]);
	close(fd[1]);
	close(listener);
}
END_TEST

START_TEST(a_connect_that_is_refused_is_told_once_it_is_writable)
{
	struct addr to;
	int fd = tcp_listen("127.0.0.1", 0);

	addr_of(fd, &to);
	close(fd);
	fd = sock_connect(&to, &plain);
	if (fd >= 0) {
		ck_assert_int_gt(peer_wait(fd, POLLOUT, SOON_MS), 0);
		ck_assert_int_eq(sock_connected(fd), -ECONNREFUSED);
		close(fd);
	} else {
		ck_assert_int_eq(fd, -ECONNREFUSED);
	}
}
END_TEST

/* K25, without the luck: a socket that is bound may connect to itself. */
START_TEST(a_socket_that_has_met_itself_is_known)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct addr self;

	ck_assert_int_eq(addr_parse_ip(&self, "127.0.0.1", 0), 0);
	ck_assert_int_eq(bind(fd, &self.sa, addr_len(&self)), 0);
	addr_of(fd, &self);
	ck_assert_int_eq(connect(fd, &self.sa, addr_len(&self)), 0);
	ck_assert(sock_is_self(fd, &self));
	close(fd);
}
END_TEST

START_TEST(what_the_other_kernel_has_acknowledged_is_sent)
{
	int fd[2];

	tcp_pair(fd);
	ck_assert_int_eq(sock_outq(fd[0]), 0);
	peer_small_buffers(fd[1], 4096);
	peer_nonblock(fd[0]);
	while (send(fd[0], loopback, 8, MSG_NOSIGNAL) > 0)
		;
	ck_assert_int_gt(sock_outq(fd[0]), 0);
	ck_assert_int_eq(sock_outq(-1), -EBADF);
	close(fd[0]);
	close(fd[1]);
}
END_TEST

START_TEST(urgent_data_is_seen_coming_and_at_its_mark)
{
	char buf[10];
	int fd[2];

	tcp_pair(fd);
	ck_assert_int_eq(sock_prepare(fd[1]), 0);
	ck_assert(!(sock_unread(fd[1]) & POLLPRI));
	ck_assert_int_eq(peer_send_all(fd[0], "abc", 3, SOON_MS), 0);
	ck_assert(!(sock_unread(fd[1]) & POLLPRI));
	ck_assert_int_eq(send(fd[0], "!", 1, MSG_OOB), 1);
	ck_assert_int_gt(peer_wait(fd[1], POLLPRI, SOON_MS), 0);
	ck_assert(sock_unread(fd[1]) & POLLPRI);
	ck_assert(!sock_at_mark(fd[1]));
	ck_assert_int_eq(recv(fd[1], buf, sizeof(buf), 0), 3);
	ck_assert(sock_at_mark(fd[1]));
	ck_assert_int_eq(recv(fd[1], buf, 1, 0), 1);
	ck_assert_int_eq(buf[0], '!');
	ck_assert(!sock_at_mark(fd[1]));
	ck_assert(!(sock_unread(fd[1]) & POLLPRI));
	close(fd[0]);
	close(fd[1]);
}
END_TEST

START_TEST(a_close_is_a_fin_or_a_reset_as_asked)
{
	int fd[2];

	tcp_pair(fd);
	sock_close(fd[0], false);
	ck_assert_int_eq(peer_expect_eof(fd[1], SOON_MS), 0);
	close(fd[1]);
	tcp_pair(fd);
	sock_close(fd[0], true);
	ck_assert_int_eq(peer_expect_reset(fd[1], SOON_MS), 0);
	close(fd[1]);
	sock_close(-1, true);
}
END_TEST

START_TEST(nonblocking_is_set_where_it_was_not)
{
	int fd[2];

	tcp_pair(fd);
	ck_assert_int_eq(sock_nonblock(fd[0]), 0);
	ck_assert_int_ne(fcntl(fd[0], F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_eq(sock_nonblock(fd[0]), 0);
	close(fd[0]);
	close(fd[1]);
	ck_assert_int_eq(sock_nonblock(-1), -EBADF);
}
END_TEST

START_TEST(want_of_something_is_told_from_other_errors)
{
	ck_assert(sock_is_shortage(EMFILE));
	ck_assert(sock_is_shortage(ENFILE));
	ck_assert(sock_is_shortage(ENOMEM));
	ck_assert(sock_is_shortage(ENOBUFS));
	ck_assert(!sock_is_shortage(0));
	ck_assert(!sock_is_shortage(EAGAIN));
	ck_assert(!sock_is_shortage(ECONNREFUSED));
}
END_TEST

/* Where MPTCP is, a FIN is no byte of its TCP: there is no telling (else the end
 * of a connection would be taken for a reset). Elsewhere this is TCP. */
START_TEST(a_fin_over_mptcp_is_heard)
{
	static const struct sockopts mptcp = { .mptcp = true };
	struct addr at, from, to;
	int listener, fd[2];
	char buf[16];

	ck_assert_int_eq(addr_parse_ip(&at, "127.0.0.1", 0), 0);
	listener = sock_listen(&at, 5, &mptcp);
	addr_of(listener, &to);
	fd[0] = sock_connect(&to, &mptcp);
	ck_assert_int_gt(peer_wait(listener, POLLIN, SOON_MS), 0);
	fd[1] = sock_accept(listener, &from);
	ck_assert_int_gt(peer_wait(fd[0], POLLOUT, SOON_MS), 0);
	ck_assert_int_eq(write(fd[0], "0123456789", 10), 10);
	ck_assert_int_eq(shutdown(fd[0], SHUT_WR), 0);
	ck_assert_int_gt(peer_wait(fd[1], POLLRDHUP, SOON_MS), 0);
	ck_assert_int_eq(read(fd[1], buf, sizeof(buf)), 10);
	ck_assert(sock_fin_received(fd[1], 10));
	close(fd[0]);
	close(fd[1]);
	close(listener);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sock");
	TCase *tc = support_case(s, "sock");

	tcase_add_loop_test(tc, listen_connect_and_accept_make_a_prepared_pair,
			    0, 2);
	tcase_add_test(tc, a_connect_that_is_refused_is_told_once_it_is_writable);
	tcase_add_test(tc, a_socket_that_has_met_itself_is_known);
	tcase_add_test(tc, what_the_other_kernel_has_acknowledged_is_sent);
	tcase_add_test(tc, urgent_data_is_seen_coming_and_at_its_mark);
	tcase_add_test(tc, a_close_is_a_fin_or_a_reset_as_asked);
	tcase_add_test(tc, nonblocking_is_set_where_it_was_not);
	tcase_add_test(tc, want_of_something_is_told_from_other_errors);
	tcase_add_test(tc, a_fin_over_mptcp_is_heard);
	return support_main(s);
}
