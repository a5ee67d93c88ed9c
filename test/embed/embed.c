/* SPDX-License-Identifier: MIT */
/*
 * The example forwards. Its path is in $FORWARD; _i is the mode.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/pacer.h"
#include "support/peer.h"
#include "support/suite.h"

#define MODES 3
#define BULK  2000000

extern char **environ;

static pid_t forward;
static int listener; /* the target's */
static uint16_t port;

static void stop(void)
{
	int status;

	if (forward <= 0)
		return;
	kill(forward, SIGTERM);
	waitpid(forward, &status, 0);
	forward = 0;
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static int connect_soon(void)
{
	int64_t end = now_ms() + SOON_MS;
	int fd;

	while ((fd = tcp_connect("127.0.0.1", port)) == -ECONNREFUSED) {
		ck_assert_msg(now_ms() < end, "it does not listen");
		sleep_ms(2);
	}
	ck_assert_int_ge(fd, 0);
	return fd;
}

/* Starts the example. Its first connection is refused as long as it does not
 * listen, so there is one to be thrown away. */
static void start(int mode)
{
	char how[MODES][8] = { "splice", "copy", "auto" }, from[32], to[32];
	char *argv[] = { getenv("FORWARD"), how[mode], from, to, NULL };
	int fd = tcp_listen("127.0.0.1", 0);

	ck_assert_ptr_nonnull(argv[0]);
	port = tcp_port(fd);
	close(fd);
	listener = tcp_listen("127.0.0.1", 0);
	snprintf(from, sizeof(from), "127.0.0.1:%u", port);
	snprintf(to, sizeof(to), "127.0.0.1:%u", tcp_port(listener));
	ck_assert_int_eq(
		posix_spawn(&forward, argv[0], NULL, NULL, argv, environ), 0);
	fd = connect_soon();
	close(tcp_accept(listener, SOON_MS));
	close(fd);
}

static void make_pair(int fd[2])
{
	fd[0] = connect_soon();
	fd[1] = tcp_accept(listener, SOON_MS);
	ck_assert_int_ge(fd[1], 0);
}

START_TEST(bytes_pass_both_ways_and_a_fin_as_a_fin)
{
	struct pacer up[2], down[2];
	int fd[2];

	start(_i);
	make_pair(fd);
	for (int i = 0; i < 2; i++) {
		up[i] = (struct pacer){
			.fd = fd[i], .stream = (unsigned)i, .size = BULK, .end = 1
		};
		down[i] = up[i];
		down[i].fd = fd[!i];
		pacer_start_recv(&down[i]);
		pacer_start_send(&up[i]);
	}
	for (int i = 0; i < 2; i++) {
		pacer_join(&up[i]);
		pacer_join(&down[i]);
	}
	close(fd[0]);
	close(fd[1]);
	stop();
}
END_TEST

START_TEST(a_reset_passes_as_a_reset)
{
	int fd[2];

	start(_i);
	for (int i = 0; i < 2; i++) {
		make_pair(fd);
		peer_reset(fd[i]);
		ck_assert_int_eq(peer_expect_reset(fd[!i], SOON_MS), 0);
		close(fd[!i]);
	}
	stop();
}
END_TEST

START_TEST(a_target_that_is_not_there_resets_the_client_and_nothing_else)
{
	int fd[2], client;
	char text[3];

	start(_i);
	make_pair(fd);
	close(listener);
	client = connect_soon();
	ck_assert_int_eq(peer_expect_reset(client, SOON_MS), 0);
	close(client);
	ck_assert_int_eq(peer_send_all(fd[0], "abc", 3, SOON_MS), 0);
	ck_assert_int_eq(peer_recv_all(fd[1], text, 3, SOON_MS), 3);
	ck_assert_mem_eq(text, "abc", 3);
	close(fd[0]);
	close(fd[1]);
	stop();
}
END_TEST

START_TEST(many_connections_pass_at_once)
{
	enum { N = 100 };
	int fd[N][2];
	char byte;

	start(_i);
	for (int i = 0; i < N; i++)
		make_pair(fd[i]);
	for (int i = 0; i < N; i++) {
		byte = (char)i;
		ck_assert_int_eq(peer_send_all(fd[i][i & 1], &byte, 1, SOON_MS),
				 0);
	}
	for (int i = 0; i < N; i++) {
		ck_assert_int_eq(
			peer_recv_all(fd[i][!(i & 1)], &byte, 1, SOON_MS), 1);
		ck_assert_int_eq(byte, (char)i);
		close(fd[i][0]);
		close(fd[i][1]);
	}
	stop();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("embed");
	TCase *tc = support_case(s, "embed");

	tcase_add_checked_fixture(tc, NULL, stop);
	tcase_add_loop_test(tc, bytes_pass_both_ways_and_a_fin_as_a_fin, 0,
			    MODES);
	tcase_add_loop_test(tc, a_reset_passes_as_a_reset, 0, MODES);
	tcase_add_loop_test(
		tc, a_target_that_is_not_there_resets_the_client_and_nothing_else,
		0, MODES);
	tcase_add_loop_test(tc, many_connections_pass_at_once, 0, MODES);
	return support_main(s);
}
