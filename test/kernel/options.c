/* SPDX-License-Identifier: MIT */
/*
 * Options of a TCP socket that promise more than they do.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel/fixture.h"

static int option(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value;

	ck_assert_int_eq(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

static void set_option(int fd, int level, int name, int value)
{
	ck_assert_int_eq(setsockopt(fd, level, name, &value, sizeof(value)), 0);
}

/* K26. The peer that has sent all it has, and waits, would wait for ever. */
START_TEST(rcvlowat_holds_back_a_small_message_but_not_a_fin)
{
	int fd[2], ep;

	fixture_pair(fd);
	set_option(fd[1], SOL_SOCKET, SO_RCVLOWAT, 100);
	ep = edge_watch(fd[1], EPOLLIN | EPOLLET);
	peer_says(fd[0], "x", 1);
	await_unread(fd[1], 1);
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	shutdown(fd[0], SHUT_WR);
	ck_assert(edge_next(ep, SOON_MS) & EPOLLIN);
	close(ep);
	fixture_close(fd);
}
END_TEST

/* K27. How far a buffer that was not set grows is up to net.ipv4.tcp_wmem. */
START_TEST(a_send_buffer_that_was_set_is_no_longer_tuned)
{
	int fd[2], set;

	fixture_pair(fd);
	set_option(fd[1], SOL_SOCKET, SO_SNDBUF, 20000);
	set = option(fd[1], SOL_SOCKET, SO_SNDBUF);
	fill_socket(fd[1]);
	ck_assert_int_eq(option(fd[1], SOL_SOCKET, SO_SNDBUF), set);
	fixture_close(fd);

	fixture_pair(fd);
	set = option(fd[1], SOL_SOCKET, SO_SNDBUF);
	fill_socket(fd[1]);
	support_note("not set: %d bytes become %d", set,
		     option(fd[1], SOL_SOCKET, SO_SNDBUF));
	fixture_close(fd);
}
END_TEST

/* K27. 1 GiB is above any limit that makes sense. */
START_TEST(a_buffer_above_the_limit_is_made_smaller_without_an_error)
{
	int fd[2];

	fixture_pair(fd);
	set_option(fd[1], SOL_SOCKET, SO_RCVBUF, 1 << 30);
	ck_assert_int_lt(option(fd[1], SOL_SOCKET, SO_RCVBUF) / 2, 1 << 30);
	set_option(fd[1], SOL_SOCKET, SO_SNDBUF, 1 << 30);
	ck_assert_int_lt(option(fd[1], SOL_SOCKET, SO_SNDBUF) / 2, 1 << 30);
	fixture_close(fd);
}
END_TEST

/* K31. The peer lives, acknowledges every probe of its window, and does not
 * read. */
START_TEST(user_timeout_kills_a_live_peer_that_does_not_read)
{
	int fd[2];
	int64_t t;

	fixture_pair(fd);
	fill_socket(fd[1]);
	set_option(fd[1], IPPROTO_TCP, TCP_USER_TIMEOUT, 300);
	t = now_ms();
	ck_assert_int_gt(peer_wait(fd[1], 0, SOON_MS), 0);
	support_note("dead after %d ms", (int)(now_ms() - t));
	ck_assert_int_eq(option(fd[1], SOL_SOCKET, SO_ERROR), ETIMEDOUT);
	fixture_close(fd);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("options");
	TCase *tc = support_case(s, "kernel");

	tcase_add_test(tc, rcvlowat_holds_back_a_small_message_but_not_a_fin);
	tcase_add_test(tc, a_send_buffer_that_was_set_is_no_longer_tuned);
	tcase_add_test(
		tc, a_buffer_above_the_limit_is_made_smaller_without_an_error);
	tcase_add_test(tc, user_timeout_kills_a_live_peer_that_does_not_read);
	return support_main(s);
}
