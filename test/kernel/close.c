/* SPDX-License-Identifier: MIT */
/*
 * How a connection is closed so that its peer gets all that was meant for it.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel/fixture.h"
#include "support/stamp.h"

/* K22 */
START_TEST(close_with_unread_input_resets_the_peer)
{
	int fd[2];

	fixture_pair(fd);
	peer_says(fd[0], "x", 1);
	await_unread(fd[1], 1);
	close(fd[1]);
	ck_assert_int_eq(peer_expect_reset(fd[0], SOON_MS), 0);
	close(fd[0]);
}
END_TEST

/* K22: an answer on its way is lost, FIN or no FIN before. */
START_TEST(close_with_unread_input_loses_the_answer)
{
	int fd[2];
	size_t sent;

	fixture_pair(fd);
	peer_says(fd[0], "x", 1);
	await_unread(fd[1], 1);
	sent = fill_socket(fd[1]);
	if (_i)
		shutdown(fd[1], SHUT_WR);
	close(fd[1]);
	ck_assert_uint_lt(read_to_reset(fd[0]), sent);
	close(fd[0]);
}
END_TEST

/* And this is the way to keep it. */
START_TEST(shutdown_then_discard_then_close_keeps_the_answer)
{
	int fd[2];
	size_t sent;

	fixture_pair(fd);
	peer_says(fd[0], "xyz", 3);
	await_unread(fd[1], 3);
	sent = fill_socket(fd[1]);
	shutdown(fd[1], SHUT_WR);
	ck_assert_int_eq(recv(fd[1], NULL, 1 << 30, MSG_TRUNC), 3);
	close(fd[1]);
	ck_assert_int_eq(peer_drain(fd[0], SOON_MS), sent);
	close(fd[0]);
}
END_TEST

/* But what the peer says after the close is answered with a RST, so discarding
 * goes on until its FIN, or a bound. */
START_TEST(bytes_that_come_after_close_are_answered_with_a_reset)
{
	int fd[2];

	fixture_pair(fd);
	close(fd[1]);
	await_fin(fd[0]);
	peer_says(fd[0], "x", 1);
	await_reset(fd[0]);
	ck_assert_int_eq(send_now(fd[0], "x", 1), -EPIPE);
	close(fd[0]);
}
END_TEST

/* After a shutdown the other direction is as it was. */
START_TEST(shutdown_ends_one_direction_after_its_last_byte)
{
	int fd[2];
	size_t sent;
	char c;

	fixture_pair(fd);
	sent = fill_socket(fd[1]);
	shutdown(fd[1], SHUT_WR);
	ck_assert_int_eq(peer_drain(fd[0], SOON_MS), sent);
	peer_says(fd[0], "x", 1);
	ck_assert_int_eq(peer_recv_all(fd[1], &c, 1, SOON_MS), 1);
	ck_assert_int_eq(send_now(fd[1], "x", 1), -EPIPE);
	fixture_close(fd);
}
END_TEST

/* Discarding costs no copy and needs no buffer. */
START_TEST(recv_trunc_discards_bytes_without_a_buffer)
{
	char buf[1000];
	int fd[2];

	fixture_pair(fd);
	stamp_fill(buf, 1, 0, sizeof(buf));
	peer_says(fd[0], buf, sizeof(buf));
	await_unread(fd[1], sizeof(buf));
	ck_assert_int_eq(recv(fd[1], NULL, 301, MSG_TRUNC), 301);
	ck_assert_int_eq(recv_now(fd[1], buf, 100), 100);
	ck_assert_int_eq(stamp_check(buf, 1, 301, 100), -1);
	ck_assert_int_eq(recv(fd[1], NULL, 1 << 30, MSG_TRUNC), 599);
	ck_assert_int_eq(recv(fd[1], NULL, 1 << 30, MSG_TRUNC), -1);
	ck_assert_int_eq(errno, EAGAIN);
	if (_i) {
		peer_reset(fd[0]);
		await_reset(fd[1]);
		ck_assert_int_eq(recv(fd[1], NULL, 1 << 30, MSG_TRUNC), -1);
		ck_assert_int_eq(errno, ECONNRESET);
	} else {
		shutdown(fd[0], SHUT_WR);
		await_fin(fd[1]);
		ck_assert_int_eq(recv(fd[1], NULL, 1 << 30, MSG_TRUNC), 0);
		close(fd[0]);
	}
	close(fd[1]);
}
END_TEST

/* K30 */
START_TEST(a_reset_throws_the_send_queue_away)
{
	int fd[2];
	size_t sent, got;

	fixture_pair(fd);
	sent = fill_socket(fd[1]);
	ck_assert_int_gt(peer_unacked(fd[1]), 0);
	peer_reset(fd[1]);
	got = read_to_reset(fd[0]);
	support_note("%zu of %zu bytes arrived", got, sent);
	ck_assert_uint_lt(got, sent);
	close(fd[0]);
}
END_TEST

/* So it waits until the peer's kernel has it all, which need not have been
 * read. */
START_TEST(a_reset_with_siocoutq_0_loses_nothing)
{
	static const char buf[20000];
	int fd[2];

	fixture_pair(fd);
	peer_says(fd[1], buf, sizeof(buf));
	await_acked(fd[1]);
	peer_reset(fd[1]);
	ck_assert_uint_eq(read_to_reset(fd[0]), sizeof(buf));
	close(fd[0]);
}
END_TEST

/* The peer's window is shut. Should its kernel take a byte of a probe right
 * between the two questions, the second is wrong: once, not three times. */
START_TEST(siocoutq_counts_an_unacked_fin)
{
	int fd[2], fin = 0;

	for (int i = 0; i < 3 && fin != 1; i++) {
		fixture_pair(fd);
		fill_socket(fd[1]);
		fin = -peer_unacked(fd[1]);
		shutdown(fd[1], SHUT_WR);
		fin += peer_unacked(fd[1]);
		ck_assert_int_gt(peer_drain(fd[0], SOON_MS), 0);
		await_acked(fd[1]);
		fixture_close(fd);
	}
	ck_assert_int_eq(fin, 1);
}
END_TEST

/* Whoever waits for SIOCOUTQ to say 0 must learn of a RST by other means. */
START_TEST(siocoutq_of_a_reset_socket_never_says_0)
{
	int fd[2];

	fixture_pair(fd);
	fill_socket(fd[1]);
	peer_reset(fd[0]);
	await_reset(fd[1]);
	sleep_ms(NEVER_MS);
	ck_assert_int_gt(peer_unacked(fd[1]), 0);
	close(fd[1]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("close");
	TCase *tc = support_case(s, "kernel");

	tcase_add_test(tc, close_with_unread_input_resets_the_peer);
	tcase_add_loop_test(tc, close_with_unread_input_loses_the_answer, 0, 2);
	tcase_add_test(tc, shutdown_then_discard_then_close_keeps_the_answer);
	tcase_add_test(tc, bytes_that_come_after_close_are_answered_with_a_reset);
	tcase_add_test(tc, shutdown_ends_one_direction_after_its_last_byte);
	tcase_add_loop_test(tc, recv_trunc_discards_bytes_without_a_buffer, 0, 2);
	tcase_add_test(tc, a_reset_throws_the_send_queue_away);
	tcase_add_test(tc, a_reset_with_siocoutq_0_loses_nothing);
	tcase_add_test(tc, siocoutq_counts_an_unacked_fin);
	tcase_add_test(tc, siocoutq_of_a_reset_socket_never_says_0);
	return support_main(s);
}
