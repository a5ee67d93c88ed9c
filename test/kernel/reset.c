/* SPDX-License-Identifier: MIT */
/*
 * K20: how a RST shows, once, and who may eat it.
 *
 * The error of a socket is one word that whoever asks first takes away: recv,
 * splice, send or SO_ERROR. epoll goes on telling, but only on its edge.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel/fixture.h"

/* A pair on which the peer has said 5 bytes, FIN if @fin, then RST; only
 * fd[1], which is ours, is left open. */
static void fixture_reset(int fd[2], int fin)
{
	fixture_pair(fd);
	peer_says(fd[0], "hello", 5);
	await_unread(fd[1], 5);
	if (fin) {
		shutdown(fd[0], SHUT_WR);
		await_fin(fd[1]);
	}
	peer_reset(fd[0]);
	await_reset(fd[1]);
}

START_TEST(bytes_before_a_reset_are_read_first_then_the_error_once)
{
	char buf[100];
	int fd[2];

	fixture_reset(fd, 0);
	ck_assert_int_eq(recv_now(fd[1], buf, 2), 2);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 3);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), -ECONNRESET);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 0);
	close(fd[1]);
}
END_TEST

START_TEST(splice_tells_a_reset_as_recv_does)
{
	int fd[2], p[2];

	fixture_reset(fd, 0);
	fixture_pipe(p, 0);
	ck_assert_int_eq(splice_in(fd[1], p, 2), 2);
	ck_assert_int_eq(splice_in(fd[1], p, 100), 3);
	ck_assert_int_eq(splice_in(fd[1], p, 100), -ECONNRESET);
	ck_assert_int_eq(splice_in(fd[1], p, 100), 0);
	fixture_close(p);
	close(fd[1]);
}
END_TEST

/* The pump's order: a full pipe says EAGAIN before the socket is asked, so the
 * error is still there afterwards. */
START_TEST(a_full_pipe_does_not_eat_the_reset)
{
	int fd[2], p[2];
	char buf[4096];
	size_t held;

	fixture_pair(fd);
	fixture_pipe(p, 65536);
	held = fill_slots(fd, p, 1);
	peer_reset(fd[0]);
	await_reset(fd[1]);
	ck_assert_int_eq(splice_in(fd[1], p, 100), -EAGAIN);
	ck_assert_int_eq(read(p[0], buf, sizeof(buf)), held);
	ck_assert_int_eq(splice_in(fd[1], p, 100), 1);
	ck_assert_int_eq(splice_in(fd[1], p, 100), -ECONNRESET);
	fixture_close(p);
	close(fd[1]);
}
END_TEST

START_TEST(asking_so_error_makes_a_reset_look_like_eof)
{
	socklen_t len = sizeof(int);
	char buf[100];
	int fd[2], err;

	fixture_reset(fd, 0);
	ck_assert_int_eq(getsockopt(fd[1], SOL_SOCKET, SO_ERROR, &err, &len), 0);
	ck_assert_int_eq(err, ECONNRESET);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 5);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 0);
	close(fd[1]);
}
END_TEST

/* Where the error has been eaten without a word, this tells whether the 0 that
 * follows is FIN: the kernel counts FIN among the bytes that it received. */
START_TEST(fin_counts_as_a_byte_received_and_a_reset_does_not)
{
	for (int fin = 0; fin < 2; fin++)
		for (int read = 0; read < 6; read += 5) {
			struct tcp_info info = { 0 };
			socklen_t len = sizeof(info);
			char buf[100];
			int fd[2], unread;

			fixture_reset(fd, fin);
			if (read)
				ck_assert_int_eq(recv_now(fd[1], buf, 5), 5);
			ck_assert_int_eq(getsockopt(fd[1], IPPROTO_TCP,
						    TCP_INFO, &info, &len),
					 0);
			ck_assert_uint_eq(len, sizeof(info));
			ck_assert_uint_eq(info.tcpi_bytes_received, 5 + fin);
			ck_assert_int_eq(ioctl(fd[1], SIOCINQ, &unread), 0);
			ck_assert_int_eq(unread, 5 - read);
			close(fd[1]);
		}
}
END_TEST

/* So a send() that says ECONNRESET has learnt something about the lane that
 * reads from the same socket, and must tell it. */
START_TEST(a_send_after_the_reset_eats_it)
{
	char buf[100];
	int fd[2];

	fixture_reset(fd, 0);
	ck_assert_int_eq(send_now(fd[1], "x", 1), -ECONNRESET);
	ck_assert_int_eq(send_now(fd[1], "x", 1), -EPIPE);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 5);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 0);
	close(fd[1]);
}
END_TEST

START_TEST(a_splice_to_a_reset_socket_eats_it)
{
	int fd[2], from[2], p[2];
	char buf[100];

	fixture_reset(fd, 0);
	fixture_pair(from);
	fixture_pipe(p, 0);
	peer_says(from[0], "x", 1);
	await_unread(from[1], 1);
	ck_assert_int_eq(splice_in(from[1], p, 1), 1);
	ck_assert_int_eq(splice_out(p, fd[1], 1), -ECONNRESET);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 5);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 0);
	fixture_close(p);
	fixture_close(from);
	close(fd[1]);
}
END_TEST

/* After its FIN a peer's RST is EPIPE, and only a writer is told. */
START_TEST(a_reset_after_fin_is_told_to_the_writer_only)
{
	char buf[100];
	int fd[2];

	fixture_reset(fd, 1);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 5);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 0);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 0);
	ck_assert_int_eq(send_now(fd[1], "x", 1), -EPIPE);
	ck_assert_int_eq(send_now(fd[1], "x", 1), -EPIPE);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 0);
	close(fd[1]);
}
END_TEST

/* A relay whose lane from this side is SHUT learns of it by epoll. */
START_TEST(a_reset_after_fin_makes_an_edge)
{
	int fd[2], ep;

	fixture_pair(fd);
	ep = edge_watch(fd[1], EDGE_ALL);
	shutdown(fd[0], SHUT_WR);
	edge_until(ep, EPOLLIN | EPOLLRDHUP);
	while (edge_next(ep, NEVER_MS))
		;
	peer_reset(fd[0]);
	edge_until(ep, EPOLLERR | EPOLLHUP);
	close(ep);
	close(fd[1]);
}
END_TEST

START_TEST(a_reset_on_an_idle_connection_makes_an_edge)
{
	int fd[2], ep;
	char c;

	fixture_pair(fd);
	ep = edge_watch(fd[1], EDGE_ALL);
	while (edge_next(ep, NEVER_MS))
		;
	peer_reset(fd[0]);
	edge_until(ep, EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP);
	ck_assert_int_eq(recv_now(fd[1], &c, 1), -ECONNRESET);
	close(ep);
	close(fd[1]);
}
END_TEST

/* ERR goes away with the error, HUP stays: it tells of nothing but the end of
 * both directions. FINs both ways make a HUP, too. */
START_TEST(hup_without_err_is_no_reset)
{
	int fd[2], ep;
	uint32_t seen;

	fixture_pair(fd);
	ep = edge_watch(fd[1], EDGE_ALL);
	shutdown(fd[0], SHUT_WR);
	edge_until(ep, EPOLLRDHUP);
	shutdown(fd[1], SHUT_WR);
	seen = edge_until(ep, EPOLLHUP);
	ck_assert_uint_eq(seen & EPOLLERR, 0);
	close(ep);
	fixture_close(fd);
}
END_TEST

/* K21: level-triggered, they fire for ever, even with an empty mask. */
START_TEST(err_and_hup_cannot_be_masked)
{
	int fd[2], ep;
	char c;

	fixture_reset(fd, 0);
	ep = edge_watch(fd[1], 0);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLERR | EPOLLHUP);
	close(ep);

	ep = edge_watch(fd[1], EPOLLET);
	ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLERR | EPOLLHUP);
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	close(ep);

	ck_assert_int_eq(recv_now(fd[1], &c, 1), 1);
	ck_assert_int_eq(send_now(fd[1], "x", 1), -ECONNRESET);
	ep = edge_watch(fd[1], 0);
	ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLHUP);
	close(ep);
	close(fd[1]);
}
END_TEST

/* Not an error of the relay's own: the RST is learnt elsewhere. */
START_TEST(shutdown_of_a_reset_socket_says_enotconn)
{
	char buf[100];
	int fd[2];

	fixture_reset(fd, 0);
	ck_assert_int_eq(shutdown(fd[1], SHUT_WR), -1);
	ck_assert_int_eq(errno, ENOTCONN);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 5);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), -ECONNRESET);
	close(fd[1]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("reset");
	TCase *tc = support_case(s, "kernel");

	tcase_add_test(tc,
		       bytes_before_a_reset_are_read_first_then_the_error_once);
	tcase_add_test(tc, splice_tells_a_reset_as_recv_does);
	tcase_add_test(tc, a_full_pipe_does_not_eat_the_reset);
	tcase_add_test(tc, asking_so_error_makes_a_reset_look_like_eof);
	tcase_add_test(tc, fin_counts_as_a_byte_received_and_a_reset_does_not);
	tcase_add_test(tc, a_send_after_the_reset_eats_it);
	tcase_add_test(tc, a_splice_to_a_reset_socket_eats_it);
	tcase_add_test(tc, a_reset_after_fin_is_told_to_the_writer_only);
	tcase_add_test(tc, a_reset_after_fin_makes_an_edge);
	tcase_add_test(tc, a_reset_on_an_idle_connection_makes_an_edge);
	tcase_add_test(tc, hup_without_err_is_no_reset);
	tcase_add_test(tc, err_and_hup_cannot_be_masked);
	tcase_add_test(tc, shutdown_of_a_reset_socket_says_enotconn);
	return support_main(s);
}
