/* SPDX-License-Identifier: MIT */
/*
 * K7: TCP urgent data, which stops splice(2) for ever.
 *
 * A stream with an urgent byte has a mark in it. What reads up to the mark
 * stops there, and the urgent byte itself is only seen by recv(MSG_OOB). The
 * next recv() steps over it; splice(2) never does. So: on EPOLLPRI go over to
 * recv(), at the mark (and not before) take the byte by MSG_OOB, then recv().
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/sockios.h>
#include <unistd.h>

#include "kernel/fixture.h"

static int at_mark(int fd)
{
	int yes;

	ck_assert_int_eq(ioctl(fd, SIOCATMARK, &yes), 0);
	return yes;
}

/* The urgent byte, or a negative errno. */
static int take_urgent(int fd)
{
	char c;
	ssize_t n = recv(fd, &c, 1, MSG_OOB | MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	ck_assert_int_eq(n, 1);
	return c;
}

static void says_urgent(int fd, char c)
{
	ck_assert_int_eq(send(fd, &c, 1, MSG_OOB | MSG_NOSIGNAL), 1);
}

static void await_urgent(int fd)
{
	ck_assert_int_gt(peer_wait(fd, POLLPRI, SOON_MS), 0);
}

/* What recv() says next is @text. */
static void expect_text(int fd, const char *text)
{
	char buf[100];

	ck_assert_int_eq(recv_now(fd, buf, sizeof(buf)), strlen(text));
	ck_assert_mem_eq(buf, text, strlen(text));
}

/* A pair on which the peer has said abc, U (urgent), def; all has arrived. */
static void fixture_urgent(int fd[2])
{
	fixture_pair(fd);
	peer_says(fd[0], "abc", 3);
	says_urgent(fd[0], 'U');
	peer_says(fd[0], "def", 3);
	await_urgent(fd[1]);
	await_unread(fd[1], 3);
	/* "unread" ends at the mark: "def" shows only in what is acked */
	await_acked(fd[0]);
}

START_TEST(splice_stops_at_the_mark_while_epoll_says_readable)
{
	int fd[2], p[2], ep;

	fixture_urgent(fd);
	fixture_pipe(p, 0);
	ep = edge_watch(fd[1], EPOLLIN);
	ck_assert_int_eq(splice_in(fd[1], p, 100), 3);
	ck_assert_int_eq(at_mark(fd[1]), 1);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(splice_in(fd[1], p, 100), -EAGAIN);
		ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLIN);
	}
	close(ep);
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

START_TEST(oobinline_does_not_help_splice_over_the_mark)
{
	int fd[2], p[2], one = 1;

	fixture_urgent(fd);
	fixture_pipe(p, 0);
	ck_assert_int_eq(setsockopt(fd[1], SOL_SOCKET, SO_OOBINLINE, &one,
				    sizeof(one)),
			 0);
	ck_assert_int_eq(splice_in(fd[1], p, 100), 3);
	ck_assert_int_eq(splice_in(fd[1], p, 100), -EAGAIN);
	expect_text(fd[1], "Udef");
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

/* A false EOF: whoever believes it loses "def". */
START_TEST(after_the_fin_splice_at_the_mark_says_0_with_bytes_queued)
{
	int fd[2], p[2];

	fixture_urgent(fd);
	fixture_pipe(p, 0);
	ck_assert_int_eq(splice_in(fd[1], p, 100), 3);
	shutdown(fd[0], SHUT_WR);
	await_fin(fd[1]);
	ck_assert_int_eq(splice_in(fd[1], p, 100), 0);
	ck_assert_int_eq(at_mark(fd[1]), 1);
	ck_assert_int_eq(take_urgent(fd[1]), 'U');
	expect_text(fd[1], "def");
	expect_text(fd[1], "");
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

START_TEST(one_recv_past_the_mark_frees_splice)
{
	int fd[2], p[2];
	char c;

	fixture_urgent(fd);
	fixture_pipe(p, 0);
	ck_assert_int_eq(splice_in(fd[1], p, 100), 3);
	ck_assert_int_eq(recv_now(fd[1], &c, 1), 1);
	ck_assert_int_eq(c, 'd');
	ck_assert_int_eq(at_mark(fd[1]), 0);
	ck_assert_int_eq(splice_in(fd[1], p, 100), 2);
	ck_assert_int_eq(splice_in(fd[1], p, 100), -EAGAIN);
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

/* With and without other bytes before it. */
START_TEST(urgent_data_makes_an_edge_with_pri)
{
	int fd[2], ep;
	uint32_t seen;

	fixture_pair(fd);
	ep = edge_watch(fd[1], EDGE_ALL);
	while (edge_next(ep, NEVER_MS))
		;
	says_urgent(fd[0], 'U');
	seen = edge_until(ep, EPOLLPRI);
	support_note("urgent byte alone: edge %#x", seen);
	ck_assert_int_eq(at_mark(fd[1]), 1);
	ck_assert_int_eq(take_urgent(fd[1]), 'U');
	peer_says(fd[0], "abc", 3);
	edge_until(ep, EPOLLIN);
	expect_text(fd[1], "abc");
	says_urgent(fd[0], 'V');
	edge_until(ep, EPOLLPRI);
	close(ep);
	fixture_close(fd);
}
END_TEST

/* The order that a look at the mark on EAGAIN alone would catch, and one on
 * the first call would not: a whole success comes first. */
START_TEST(success_then_eagain_at_the_mark_comes_of_one_edge)
{
	int fd[2], p[2], ep;

	fixture_urgent(fd);
	fixture_pipe(p, 0);
	ep = edge_watch(fd[1], EDGE_ALL);
	edge_until(ep, EPOLLIN | EPOLLPRI);
	ck_assert_int_eq(at_mark(fd[1]), 0);
	ck_assert_int_eq(splice_in(fd[1], p, 100), 3);
	ck_assert_int_eq(splice_in(fd[1], p, 100), -EAGAIN);
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	close(ep);
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

/* K32, of the mark: a short count says nothing here. */
START_TEST(a_recv_cut_short_by_the_mark_is_not_followed_by_an_edge)
{
	int fd[2], ep;

	fixture_urgent(fd);
	ep = edge_watch(fd[1], EDGE_ALL);
	edge_until(ep, EPOLLIN | EPOLLPRI);
	expect_text(fd[1], "abc");
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	expect_text(fd[1], "def");
	close(ep);
	fixture_close(fd);
}
END_TEST

/* Taking the byte does not step over it. */
START_TEST(the_mark_stays_until_a_recv_after_the_byte_was_taken)
{
	int fd[2], p[2];

	fixture_urgent(fd);
	fixture_pipe(p, 0);
	expect_text(fd[1], "abc");
	ck_assert_int_eq(take_urgent(fd[1]), 'U');
	ck_assert_int_eq(at_mark(fd[1]), 1);
	ck_assert_int_eq(take_urgent(fd[1]), -EINVAL);
	ck_assert_int_eq(splice_in(fd[1], p, 100), -EAGAIN);
	expect_text(fd[1], "def");
	ck_assert_int_eq(at_mark(fd[1]), 0);
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

/* An EAGAIN of recv() steps over the mark, too. */
START_TEST(recv_with_nothing_past_the_mark_frees_splice)
{
	int fd[2], p[2];
	char c;

	fixture_pair(fd);
	fixture_pipe(p, 0);
	says_urgent(fd[0], 'U');
	await_urgent(fd[1]);
	ck_assert_int_eq(take_urgent(fd[1]), 'U');
	ck_assert_int_eq(at_mark(fd[1]), 1);
	ck_assert_int_eq(recv_now(fd[1], &c, 1), -EAGAIN);
	ck_assert_int_eq(at_mark(fd[1]), 0);
	peer_says(fd[0], "abc", 3);
	await_unread(fd[1], 3);
	ck_assert_int_eq(splice_in(fd[1], p, 100), 3);
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

/* So the mark is asked for before recv(), once PRI has been seen. */
START_TEST(recv_at_the_mark_loses_an_urgent_byte_not_yet_taken)
{
	int fd[2];
	char c;

	fixture_urgent(fd);
	expect_text(fd[1], "abc");
	expect_text(fd[1], "def");
	ck_assert_int_eq(take_urgent(fd[1]), -EINVAL);

	says_urgent(fd[0], 'V');
	await_urgent(fd[1]);
	ck_assert_int_eq(recv_now(fd[1], &c, 1), -EAGAIN);
	ck_assert_int_eq(take_urgent(fd[1]), -EINVAL);
	fixture_close(fd);
}
END_TEST

/* There is one mark only: an earlier byte that nobody has come to goes back
 * into the stream. Had it been taken before its mark, it would come twice. */
START_TEST(a_byte_taken_before_its_mark_comes_again_if_a_second_follows)
{
	int fd[2];

	fixture_urgent(fd);
	ck_assert_int_eq(at_mark(fd[1]), 0);
	ck_assert_int_eq(take_urgent(fd[1]), 'U');
	says_urgent(fd[0], 'V');
	peer_says(fd[0], "ghi", 3);
	await_urgent(fd[1]);
	expect_text(fd[1], "abcUdef");
	ck_assert_int_eq(at_mark(fd[1]), 1);
	ck_assert_int_eq(take_urgent(fd[1]), 'V');
	fixture_close(fd);
}
END_TEST

/* And at its mark it does not, whatever follows. */
START_TEST(a_byte_taken_at_its_mark_comes_once)
{
	int fd[2];

	fixture_urgent(fd);
	expect_text(fd[1], "abc");
	ck_assert_int_eq(take_urgent(fd[1]), 'U');
	says_urgent(fd[0], 'V');
	await_urgent(fd[1]);
	expect_text(fd[1], "def");
	ck_assert_int_eq(at_mark(fd[1]), 1);
	ck_assert_int_eq(take_urgent(fd[1]), 'V');
	fixture_close(fd);
}
END_TEST

/* How a relay passes it on: send(MSG_OOB) marks the last byte it sends. */
START_TEST(the_last_byte_sent_as_oob_is_the_urgent_one)
{
	int fd[2];

	fixture_pair(fd);
	ck_assert_int_eq(send(fd[0], "xyU", 3, MSG_OOB), 3);
	peer_says(fd[0], "z", 1);
	await_urgent(fd[1]);
	expect_text(fd[1], "xy");
	ck_assert_int_eq(at_mark(fd[1]), 1);
	ck_assert_int_eq(take_urgent(fd[1]), 'U');
	ck_assert_int_gt(peer_wait(fd[1], POLLIN, SOON_MS), 0);
	expect_text(fd[1], "z");
	fixture_close(fd);
}
END_TEST

/* An urgent byte can no longer be had after a RST; the others can. */
START_TEST(a_reset_takes_the_urgent_byte_only)
{
	int fd[2];
	char c;

	fixture_urgent(fd);
	peer_reset(fd[0]);
	await_reset(fd[1]);
	expect_text(fd[1], "abc");
	support_note("MSG_OOB after a RST: %d", take_urgent(fd[1]));
	expect_text(fd[1], "def");
	ck_assert_int_eq(recv_now(fd[1], &c, 1), -ECONNRESET);
	close(fd[1]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("urgent");
	TCase *tc = support_case(s, "kernel");

	tcase_add_test(tc, splice_stops_at_the_mark_while_epoll_says_readable);
	tcase_add_test(tc, oobinline_does_not_help_splice_over_the_mark);
	tcase_add_test(
		tc, after_the_fin_splice_at_the_mark_says_0_with_bytes_queued);
	tcase_add_test(tc, one_recv_past_the_mark_frees_splice);
	tcase_add_test(tc, urgent_data_makes_an_edge_with_pri);
	tcase_add_test(tc, success_then_eagain_at_the_mark_comes_of_one_edge);
	tcase_add_test(tc,
		       a_recv_cut_short_by_the_mark_is_not_followed_by_an_edge);
	tcase_add_test(tc, the_mark_stays_until_a_recv_after_the_byte_was_taken);
	tcase_add_test(tc, recv_with_nothing_past_the_mark_frees_splice);
	tcase_add_test(tc, recv_at_the_mark_loses_an_urgent_byte_not_yet_taken);
	tcase_add_test(
		tc, a_byte_taken_before_its_mark_comes_again_if_a_second_follows);
	tcase_add_test(tc, a_byte_taken_at_its_mark_comes_once);
	tcase_add_test(tc, the_last_byte_sent_as_oob_is_the_urgent_one);
	tcase_add_test(tc, a_reset_takes_the_urgent_byte_only);
	return support_main(s);
}
