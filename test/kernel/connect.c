/* SPDX-License-Identifier: MIT */
/*
 * How a connection begins: what epoll tells of it, and the connection that a
 * socket may make to itself.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/fixture.h"

static struct sockaddr_in loopback(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static int new_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* Begins to connect to @port; loopback may have done it before it returns. */
static void connect_to(int fd, uint16_t port)
{
	struct sockaddr_in a = loopback(port);

	if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
		ck_assert_int_eq(errno, EINPROGRESS);
}

static int so_error(int fd)
{
	socklen_t len = sizeof(int);
	int err;

	ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len), 0);
	return err;
}

/* What epoll says of an end is remembered for ever: so a socket is watched
 * only after connect(). */
START_TEST(a_socket_watched_before_connect_reports_hup)
{
	int fd = new_socket(), ep = edge_watch(fd, EDGE_ALL);

	ck_assert(edge_next(ep, SOON_MS) & EPOLLHUP);
	close(ep);
	close(fd);
}
END_TEST

START_TEST(a_connection_made_is_an_edge_to_write)
{
	int l = tcp_listen("127.0.0.1", 0), fd = new_socket(), ep;

	connect_to(fd, tcp_port(l));
	ep = edge_watch(fd, EDGE_ALL);
	ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLOUT);
	ck_assert_int_eq(so_error(fd), 0);
	close(ep);
	close(fd);
	close(l);
}
END_TEST

START_TEST(a_connection_refused_is_an_edge_with_err)
{
	int l = tcp_listen("127.0.0.1", 0), fd = new_socket(), ep;
	struct sockaddr_in a = loopback(tcp_port(l));

	close(l);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), -1);
	ck_assert_int_eq(errno, EINPROGRESS);
	ep = edge_watch(fd, EDGE_ALL);
	edge_until(ep, EPOLLERR | EPOLLHUP);
	ck_assert_int_eq(so_error(fd), ECONNREFUSED);
	close(ep);
	close(fd);
}
END_TEST

/* The server may speak and end before the first look: relays begin with the
 * readiness seen while connecting. */
START_TEST(bytes_and_fin_that_come_while_connecting_are_told)
{
	int l = tcp_listen("127.0.0.1", 0), fd = new_socket(), ep, server;
	char c;

	connect_to(fd, tcp_port(l));
	ep = edge_watch(fd, EDGE_ALL);
	server = tcp_accept(l, SOON_MS);
	ck_assert_int_ge(server, 0);
	peer_says(server, "x", 1);
	shutdown(server, SHUT_WR);
	edge_until(ep, EPOLLOUT | EPOLLIN | EPOLLRDHUP);
	ck_assert_int_eq(recv_now(fd, &c, 1), 1);
	ck_assert_int_eq(recv_now(fd, &c, 1), 0);
	close(server);
	close(ep);
	close(fd);
	close(l);
}
END_TEST

/* What @look returns in a process of its own. */
static int status_of(int (*look)(void))
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid)
		_exit(look());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* --- K25 --- */

enum { SELF_MADE, SELF_NEVER, SELF_WRONG, SELF_SKIP };

/* A network of our own, with lo up. */
static int own_network(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd, err;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return -1;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	err = ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
	return err;
}

/* Leaves four ports for those who connect. */
static int few_ports(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "w");
	int ok;

	if (!f)
		return -1;
	ok = fprintf(f, "40000 40003\n") > 0;
	return fclose(f) || !ok ? -1 : 0;
}

/* Is the peer of @fd @fd itself? */
static int is_self(int fd)
{
	struct sockaddr_in here = { 0 }, there = { 0 };
	socklen_t len = sizeof(here);

	if (getsockname(fd, (struct sockaddr *)&here, &len))
		return 0;
	len = sizeof(there);
	if (getpeername(fd, (struct sockaddr *)&there, &len))
		return 0;
	return here.sin_port == there.sin_port &&
	       here.sin_addr.s_addr == there.sin_addr.s_addr;
}

/* In a child, so that no other test sees that network. */
static int connect_to_self(void)
{
	char c = 0;

	if (own_network() || few_ports())
		return SELF_SKIP;
	for (int i = 0; i < 2000; i++) {
		int fd = tcp_connect("127.0.0.1", 40000);

		if (fd == -ECONNREFUSED)
			continue;
		if (fd < 0 || !is_self(fd) || peer_send_all(fd, "x", 1, SOON_MS) ||
		    peer_recv_all(fd, &c, 1, SOON_MS) != 1 || c != 'x')
			return SELF_WRONG;
		support_note("try %d connected to itself", i + 1);
		return SELF_MADE;
	}
	return SELF_NEVER;
}

/* K25: nobody listens on a port of the ephemeral range, and a connection to it
 * is made all the same, to itself, and holds the port for ever. Only the
 * addresses give it away. */
START_TEST(a_connect_to_an_unused_ephemeral_port_may_reach_itself)
{
	int seen = status_of(connect_to_self);

	if (seen == SELF_SKIP)
		support_skip(
			"no network namespace with a port range to be had");
	else
		ck_assert_int_eq(seen, SELF_MADE);
}
END_TEST

START_TEST(other_connections_have_two_addresses)
{
	int fd[2];

	tcp_pair(fd);
	ck_assert(!is_self(fd[0]) && !is_self(fd[1]));
	fixture_close(fd);
}
END_TEST

/* --- K42 --- */

enum { FROM_TARGET, FROM_PRIMARY, FROM_WRONG, FROM_SKIP };

/* Gives lo the address @ip, under the label @label. */
static int add_address(const char *label, const char *ip)
{
	struct ifreq r = { 0 };
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -1;
	inet_pton(AF_INET, ip, &a.sin_addr);
	strcpy(r.ifr_name, label);
	memcpy(&r.ifr_addr, &a, sizeof(a));
	err = ioctl(fd, SIOCSIFADDR, &r);
	close(fd);
	return err;
}

/* The source address of a connection to @ip. */
static int from_where(const char *ip, char text[INET_ADDRSTRLEN])
{
	struct sockaddr_in from = { 0 };
	socklen_t len = sizeof(from);
	int l = tcp_listen(ip, 0), fd = tcp_connect(ip, tcp_port(l));

	if (fd < 0 || getsockname(fd, (struct sockaddr *)&from, &len))
		return -1;
	inet_ntop(AF_INET, &from.sin_addr, text, INET_ADDRSTRLEN);
	close(fd);
	close(l);
	return 0;
}

/* In a child, so that no other test sees that network. */
static int connect_to_secondary(void)
{
	char first[INET_ADDRSTRLEN], second[INET_ADDRSTRLEN];

	if (own_network() || add_address("lo:1", "10.8.0.1") ||
	    add_address("lo:2", "10.8.0.2"))
		return FROM_SKIP;
	if (from_where("10.8.0.1", first) || from_where("10.8.0.2", second) ||
	    strcmp(first, "10.8.0.1"))
		return FROM_WRONG;
	support_note("a connection to 10.8.0.2 comes from %s", second);
	return strcmp(second, "10.8.0.1") ? FROM_TARGET : FROM_PRIMARY;
}

/* K42: two addresses of one subnet, of which the second is a secondary one. So
 * the address that a connection comes from does not tell whether the one it
 * goes to is this machine's. */
START_TEST(a_connection_to_a_secondary_address_comes_from_the_primary)
{
	int seen = status_of(connect_to_secondary);

	if (seen == FROM_SKIP)
		support_skip("no network namespace with addresses here");
	else
		ck_assert_int_eq(seen, FROM_PRIMARY);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("connect");
	TCase *tc = support_case(s, "kernel");

	tcase_add_test(tc, a_socket_watched_before_connect_reports_hup);
	tcase_add_test(tc, a_connection_made_is_an_edge_to_write);
	tcase_add_test(tc, a_connection_refused_is_an_edge_with_err);
	tcase_add_test(tc, bytes_and_fin_that_come_while_connecting_are_told);
	tcase_add_test(tc,
		       a_connect_to_an_unused_ephemeral_port_may_reach_itself);
	tcase_add_test(tc, other_connections_have_two_addresses);
	tcase_add_test(
		tc, a_connection_to_a_secondary_address_comes_from_the_primary);
	return support_main(s);
}
