/* SPDX-License-Identifier: MIT */
/*
 * What SO_LINGER {on, 0 s} does to a socket that is closed: by close(2), or by
 * the kernel when its process is killed.
 */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/fixture.h"

static void set_linger_0(int fd, int on)
{
	struct linger l = { .l_onoff = on };

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
}

/* K37 */
START_TEST(accepted_sockets_inherit_so_linger)
{
	struct linger got = { .l_linger = -1 };
	socklen_t len = sizeof(got);
	int l = tcp_listen("127.0.0.1", 0), client, fd;

	set_linger_0(l, 1);
	client = tcp_connect("127.0.0.1", tcp_port(l));
	ck_assert_int_ge(client, 0);
	fd = tcp_accept(l, SOON_MS);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_LINGER, &got, &len), 0);
	ck_assert_int_eq(got.l_onoff, 1);
	ck_assert_int_eq(got.l_linger, 0);
	close(fd);
	ck_assert_int_eq(peer_expect_reset(client, SOON_MS), 0);
	close(client);
	close(l);
}
END_TEST

/* Kills a process that holds the only descriptor of @fd. */
static void die_with(int fd)
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid)
		for (;;)
			pause();
	close(fd);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
}

/* K38. What the kernel closes for a killed process must not look to the peer
 * like the end of its stream. Nothing is unread: that would be a RST by K22. */
START_TEST(a_killed_process_sends_fin_or_with_linger_0_a_reset)
{
	int fd[2];

	fixture_pair(fd);
	peer_says(fd[0], "x", 1);
	peer_gets(fd[1], 1);
	if (_i)
		set_linger_0(fd[1], 1);
	die_with(fd[1]);
	if (_i)
		ck_assert_int_eq(peer_expect_reset(fd[0], SOON_MS), 0);
	else
		ck_assert_int_eq(peer_expect_eof(fd[0], SOON_MS), 0);
	close(fd[0]);
}
END_TEST

/* K38 */
START_TEST(linger_0_taken_off_before_close_leaves_an_orderly_end)
{
	int fd[2];
	size_t sent;

	fixture_pair(fd);
	set_linger_0(fd[1], 1);
	sent = fill_socket(fd[1]);
	set_linger_0(fd[1], 0);
	close(fd[1]);
	ck_assert_int_eq(peer_drain(fd[0], SOON_MS), sent);
	close(fd[0]);
}
END_TEST

/* K39. Both peers have finished, our FIN waits behind our last bytes: state
 * LAST_ACK. Without the option the kernel would go on sending them. */
START_TEST(linger_0_in_last_ack_throws_the_queue_away_and_resets)
{
	int fd[2];
	size_t sent, got;

	fixture_pair(fd);
	sent = fill_socket(fd[1]);
	shutdown(fd[0], SHUT_WR);
	await_fin(fd[1]);
	ck_assert_int_eq(shutdown(fd[1], SHUT_WR), 0);
	if (!_i) {
		close(fd[1]);
		ck_assert_int_eq(peer_drain(fd[0], SOON_MS), sent);
		close(fd[0]);
		return;
	}
	set_linger_0(fd[1], 1);
	close(fd[1]);
	got = read_to_reset(fd[0]);
	support_note("%zu of %zu bytes arrived", got, sent);
	ck_assert_uint_lt(got, sent);
	close(fd[0]);
}
END_TEST

/* K39. A FIN that was sent, and acknowledged, is followed by a RST while the
 * peer may still send. */
START_TEST(linger_0_resets_after_its_own_fin)
{
	int fd[2];

	fixture_pair(fd);
	shutdown(fd[1], SHUT_WR);
	await_fin(fd[0]);
	await_acked(fd[1]);
	set_linger_0(fd[1], 1);
	close(fd[1]);
	await_reset(fd[0]);
	close(fd[0]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("linger");
	TCase *tc = support_case(s, "kernel");

	tcase_add_test(tc, accepted_sockets_inherit_so_linger);
	tcase_add_loop_test(
		tc, a_killed_process_sends_fin_or_with_linger_0_a_reset, 0, 2);
	tcase_add_test(tc, linger_0_taken_off_before_close_leaves_an_orderly_end);
	tcase_add_loop_test(
		tc, linger_0_in_last_ack_throws_the_queue_away_and_resets, 0, 2);
	tcase_add_test(tc, linger_0_resets_after_its_own_fin);
	return support_main(s);
}
