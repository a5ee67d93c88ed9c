/* SPDX-License-Identifier: MIT */
/*
 * What a listener hands on to those it accepts, and what it keeps.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
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

/* One listener and a connection that waits on it. */
static int fixture_queued(int *client)
{
	int l = tcp_listen("127.0.0.1", 0);

	peer_nonblock(l);
	*client = tcp_connect("127.0.0.1", tcp_port(l));
	ck_assert_int_ge(*client, 0);
	ck_assert_int_gt(peer_wait(l, EPOLLIN, SOON_MS), 0);
	return l;
}

/* K35 */
START_TEST(accepted_sockets_inherit_options)
{
	int l = tcp_listen("127.0.0.1", 0), fd[2];

	set_option(l, IPPROTO_TCP, TCP_NODELAY, 1);
	set_option(l, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(l, IPPROTO_TCP, TCP_KEEPIDLE, 77);
	fd[0] = tcp_connect("127.0.0.1", tcp_port(l));
	ck_assert_int_ge(fd[0], 0);
	fd[1] = tcp_accept(l, SOON_MS);
	ck_assert_int_ge(fd[1], 0);
	ck_assert_int_eq(option(fd[1], IPPROTO_TCP, TCP_NODELAY), 1);
	ck_assert_int_eq(option(fd[1], SOL_SOCKET, SO_KEEPALIVE), 1);
	ck_assert_int_eq(option(fd[1], IPPROTO_TCP, TCP_KEEPIDLE), 77);
	ck_assert_int_eq(option(fd[0], IPPROTO_TCP, TCP_NODELAY), 0);
	fixture_close(fd);
	close(l);
}
END_TEST

/* K10 */
START_TEST(accepted_sockets_do_not_inherit_o_nonblock)
{
	int client, l = fixture_queued(&client), fd;

	fd = accept(l, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	close(fd);
	close(client);
	close(l);
}
END_TEST

/* Makes the next descriptor one too many; returns the limit before. */
static rlim_t run_out_of_descriptors(void)
{
	struct rlimit r;
	rlim_t before;
	int lowest = open("/dev/null", O_RDONLY);

	ck_assert_int_ge(lowest, 0);
	close(lowest);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &r), 0);
	before = r.rlim_cur;
	r.rlim_cur = lowest;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &r), 0);
	return before;
}

static void allow_descriptors(rlim_t limit)
{
	struct rlimit r;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &r), 0);
	r.rlim_cur = limit;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &r), 0);
}

/* K29: level-triggered it spins, edge-triggered it is forgotten. */
START_TEST(out_of_descriptors_a_connection_stays_queued)
{
	int client, l = fixture_queued(&client), fd;
	int edge = edge_watch(l, EPOLLIN | EPOLLET);
	int level = edge_watch(l, EPOLLIN);
	rlim_t limit;
	char c;

	peer_says(client, "x", 1);
	ck_assert_uint_eq(edge_next(edge, SOON_MS), EPOLLIN);
	limit = run_out_of_descriptors();
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(edge_next(level, SOON_MS), EPOLLIN);
		fd = accept4(l, NULL, NULL, SOCK_NONBLOCK);
		ck_assert_int_eq(fd, -1);
		ck_assert_int_eq(errno, EMFILE);
	}
	allow_descriptors(limit);
	ck_assert_uint_eq(edge_next(edge, NEVER_MS), 0);
	fd = accept4(l, NULL, NULL, SOCK_NONBLOCK);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(peer_recv_all(fd, &c, 1, SOON_MS), 1);
	close(fd);
	close(edge);
	close(level);
	close(client);
	close(l);
}
END_TEST

/* A connection may be over before it is accepted; its bytes are not lost, and
 * its end is told as ever. */
START_TEST(a_connection_that_has_ended_in_the_queue_is_accepted)
{
	int client, l = fixture_queued(&client), fd;
	char c;

	peer_says(client, "x", 1);
	if (_i)
		peer_reset(client);
	else
		close(client);
	fd = tcp_accept(l, SOON_MS);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(peer_recv_all(fd, &c, 1, SOON_MS), 1);
	if (_i)
		ck_assert_int_eq(peer_expect_reset(fd, SOON_MS), 0);
	else
		ck_assert_int_eq(peer_expect_eof(fd, SOON_MS), 0);
	close(fd);
	close(l);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("accept");
	TCase *tc = support_case(s, "kernel");

	tcase_add_test(tc, accepted_sockets_inherit_options);
	tcase_add_test(tc, accepted_sockets_do_not_inherit_o_nonblock);
	tcase_add_test(tc, out_of_descriptors_a_connection_stays_queued);
	tcase_add_loop_test(
		tc, a_connection_that_has_ended_in_the_queue_is_accepted, 0, 2);
	return support_main(s);
}
