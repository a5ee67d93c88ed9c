/* SPDX-License-Identifier: MIT */
/*
 * When epoll makes an edge and when it does not: what the loop may forget and
 * what it must remember.
 */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "kernel/fixture.h"
#include "support/pacer.h"

static int watch_quiet(int fd)
{
	int ep = edge_watch(fd, EDGE_ALL);

	while (edge_next(ep, NEVER_MS))
		;
	return ep;
}

/* A connection may come with bytes, with its FIN or its RST already there. */
START_TEST(adding_reports_the_present_state_at_once)
{
	int fd[2], ep;

	fixture_pair(fd);
	ep = edge_watch(fd[1], EDGE_ALL);
	ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLOUT);
	close(ep);

	peer_says(fd[0], "x", 1);
	await_unread(fd[1], 1);
	ep = edge_watch(fd[1], EDGE_ALL);
	ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLIN | EPOLLOUT);
	close(ep);

	shutdown(fd[0], SHUT_WR);
	await_fin(fd[1]);
	ep = edge_watch(fd[1], EDGE_ALL);
	ck_assert_uint_eq(edge_next(ep, SOON_MS),
			  EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	close(ep);

	peer_reset(fd[0]);
	await_reset(fd[1]);
	ep = edge_watch(fd[1], EDGE_ALL);
	edge_until(ep, EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP);
	close(ep);
	close(fd[1]);
}
END_TEST

START_TEST(new_data_makes_an_edge_though_the_last_was_not_consumed)
{
	int fd[2], ep;

	fixture_pair(fd);
	ep = watch_quiet(fd[1]);
	for (int i = 1; i < 10; i++) {
		peer_says(fd[0], "x", 1);
		ck_assert(edge_next(ep, SOON_MS) & EPOLLIN);
		await_unread(fd[1], i);
	}
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	close(ep);
	fixture_close(fd);
}
END_TEST

/* "Short means drained" saves the recv() that would say EAGAIN. It may be
 * believed, as whatever comes after a short recv() makes an edge: */
START_TEST(a_short_recv_is_followed_by_an_edge)
{
	int fd[2], ep;
	char buf[100];

	fixture_pair(fd);
	ep = watch_quiet(fd[1]);
	for (int i = 0; i < 10; i++) {
		peer_says(fd[0], "xyz", 3);
		ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLIN | EPOLLOUT);
		ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 3);
	}
	shutdown(fd[0], SHUT_WR);
	edge_until(ep, EPOLLIN | EPOLLRDHUP);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 0);
	close(ep);
	fixture_close(fd);
}
END_TEST

/* The same against a sender that comes and goes as it likes. */
START_TEST(a_short_recv_taken_for_drained_misses_nothing)
{
	struct pacer up = { .size = 20000000, .chunk = 9000, .end = 1 };
	uint64_t sum = 0;
	uint32_t seen = 0;
	char buf[20000];
	int fd[2], ep;
	ssize_t n;

	fixture_pair(fd);
	ep = edge_watch(fd[1], EDGE_ALL);
	up.fd = fd[0];
	pacer_start_send(&up);
	do {
		uint32_t edge = edge_next(ep, SOON_MS);

		ck_assert_uint_ne(edge, 0);
		seen |= edge;
		do {
			n = recv_now(fd[1], buf, sizeof(buf));
			if (n > 0)
				sum += n;
		} while (n == sizeof(buf) || (n > 0 && seen & EPOLLRDHUP));
		ck_assert(n >= 0 || n == -EAGAIN);
	} while (n);
	pacer_join(&up);
	ck_assert_uint_eq(sum, up.size);
	close(ep);
	fixture_close(fd);
}
END_TEST

/* K32: but not if that edge spoke of an end, too. */
START_TEST(a_short_recv_with_the_fin_in_its_edge_is_not)
{
	int fd[2], ep;
	char buf[100];

	fixture_pair(fd);
	peer_says(fd[0], "xyz", 3);
	shutdown(fd[0], SHUT_WR);
	await_unread(fd[1], 3);
	await_fin(fd[1]);
	ep = edge_watch(fd[1], EDGE_ALL);
	ck_assert_uint_eq(edge_next(ep, SOON_MS),
			  EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 3);
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 0);
	close(ep);
	fixture_close(fd);
}
END_TEST

START_TEST(a_short_recv_with_the_reset_in_its_edge_is_not)
{
	int fd[2], ep;
	char buf[100];

	fixture_pair(fd);
	peer_says(fd[0], "xyz", 3);
	await_unread(fd[1], 3);
	peer_reset(fd[0]);
	await_reset(fd[1]);
	ep = edge_watch(fd[1], EDGE_ALL);
	edge_until(ep, EPOLLIN | EPOLLERR | EPOLLHUP);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), 3);
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	ck_assert_int_eq(recv_now(fd[1], buf, sizeof(buf)), -ECONNRESET);
	close(ep);
	close(fd[1]);
}
END_TEST

/* A full sink: nothing until its peer has read, then an edge. */
START_TEST(eagain_of_a_send_is_followed_by_an_edge)
{
	int fd[2], ep;
	size_t sent;
	ssize_t n;

	fixture_pair(fd);
	ep = edge_watch(fd[1], EDGE_ALL);
	sent = fill_socket(fd[1]);
	while (edge_next(ep, NEVER_MS))
		;
	/* a probe of the peer's window may have made room for a few */
	while ((n = send_now(fd[1], "x", 1)) > 0)
		sent++;
	ck_assert_int_eq(n, -EAGAIN);
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	peer_gets(fd[0], sent);
	edge_until(ep, EPOLLOUT);
	ck_assert_int_eq(send_now(fd[1], "x", 1), 1);
	close(ep);
	fixture_close(fd);
}
END_TEST

/* The edges of both directions come together: a side that is only waited for
 * to become writable learns of bytes, and of the end, all the same. */
START_TEST(a_full_socket_still_tells_of_bytes_and_fin)
{
	int fd[2], ep;

	fixture_pair(fd);
	ep = edge_watch(fd[1], EDGE_ALL);
	fill_socket(fd[1]);
	while (edge_next(ep, NEVER_MS))
		;
	peer_says(fd[0], "x", 1);
	ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLIN);
	shutdown(fd[0], SHUT_WR);
	ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLIN | EPOLLRDHUP);
	close(ep);
	fixture_close(fd);
}
END_TEST

/* K33 */
START_TEST(a_descriptor_is_watched_once)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd[2], ep;

	fixture_pair(fd);
	ep = edge_watch(fd[1], EDGE_ALL);
	ck_assert_int_eq(epoll_ctl(ep, EPOLL_CTL_ADD, fd[1], &e), -1);
	ck_assert_int_eq(errno, EEXIST);
	close(ep);
	fixture_close(fd);
}
END_TEST

/* K33: close() takes a watch away only with the last descriptor of the
 * socket. What epoll then reports is a pointer to a freed watch. */
START_TEST(a_closed_descriptor_goes_on_reporting_while_a_dup_lives)
{
	struct epoll_event e = { .events = EDGE_ALL, .data.u64 = 12345 };
	int fd[2], ep, copy;

	fixture_pair(fd);
	ep = epoll_create1(EPOLL_CLOEXEC);
	ck_assert_int_eq(epoll_ctl(ep, EPOLL_CTL_ADD, fd[1], &e), 0);
	copy = dup(fd[1]);
	close(fd[1]);
	e.data.u64 = 0;
	ck_assert_int_eq(epoll_wait(ep, &e, 1, SOON_MS), 1);
	ck_assert_uint_eq(e.data.u64, 12345);
	ck_assert_int_eq(epoll_ctl(ep, EPOLL_CTL_DEL, fd[1], NULL), -1);
	ck_assert_int_eq(errno, EBADF);
	close(copy);
	peer_says(fd[0], "x", 1);
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	close(ep);
	close(fd[0]);
}
END_TEST

START_TEST(a_deleted_descriptor_is_silent_while_a_dup_lives)
{
	int fd[2], ep, copy;

	fixture_pair(fd);
	ep = edge_watch(fd[1], EDGE_ALL);
	copy = dup(fd[1]);
	ck_assert_int_eq(epoll_ctl(ep, EPOLL_CTL_DEL, fd[1], NULL), 0);
	close(fd[1]);
	peer_says(fd[0], "x", 1);
	await_unread(copy, 1);
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	close(copy);
	close(ep);
	close(fd[0]);
}
END_TEST

/* The library's one descriptor, in an embedder's poll(2) or epoll. */
START_TEST(an_epoll_descriptor_is_itself_pollable)
{
	int fd[2], ep, outer;

	fixture_pair(fd);
	ep = watch_quiet(fd[1]);
	outer = edge_watch(ep, EPOLLIN);
	ck_assert_int_eq(peer_wait(ep, POLLIN, 0), -ETIMEDOUT);
	ck_assert_uint_eq(edge_next(outer, 0), 0);
	peer_says(fd[0], "x", 1);
	ck_assert_int_eq(peer_wait(ep, POLLIN, SOON_MS), POLLIN);
	ck_assert_uint_eq(edge_next(outer, SOON_MS), EPOLLIN);
	ck_assert_uint_ne(edge_next(ep, 0), 0);
	ck_assert_int_eq(peer_wait(ep, POLLIN, 0), -ETIMEDOUT);
	ck_assert_uint_eq(edge_next(outer, 0), 0);
	close(outer);
	close(ep);
	fixture_close(fd);
}
END_TEST

static void timer_set(int fd, long ns)
{
	struct itimerspec t = { .it_value.tv_nsec = ns };

	ck_assert_int_eq(timerfd_settime(fd, 0, &t, NULL), 0);
}

/* All timers of a thread are one descriptor, set anew as need be, and never
 * read. */
START_TEST(a_timer_set_anew_makes_an_edge_though_never_read)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	int ep = edge_watch(fd, EPOLLIN | EPOLLET);

	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	for (int i = 0; i < 3; i++) {
		timer_set(fd, 1000000);
		ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLIN);
	}
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	close(ep);
	close(fd);
}
END_TEST

START_TEST(a_timer_disarmed_is_silent)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	int ep = edge_watch(fd, EPOLLIN | EPOLLET);
	int64_t t;

	/* again, should the machine be so slow that the timer is faster */
	do {
		t = now_ms();
		timer_set(fd, NEVER_MS / 2 * 1000000L);
		timer_set(fd, 0);
	} while (now_ms() - t >= NEVER_MS / 4);
	edge_next(ep, 0);
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	close(ep);
	close(fd);
}
END_TEST

START_TEST(a_timer_set_to_a_time_past_fires_at_once)
{
	struct itimerspec past = { .it_value.tv_nsec = 1 };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	int ep = edge_watch(fd, EPOLLIN | EPOLLET);

	ck_assert_int_eq(timerfd_settime(fd, TFD_TIMER_ABSTIME, &past, NULL), 0);
	ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLIN);
	close(ep);
	close(fd);
}
END_TEST

/* How a thread is woken. */
START_TEST(every_write_to_an_eventfd_makes_an_edge_though_never_read)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int ep = edge_watch(fd, EPOLLIN | EPOLLET);

	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(edge_next(ep, 0), 0);
		ck_assert_int_eq(eventfd_write(fd, 1), 0);
		ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLIN);
	}
	close(ep);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("epoll");
	TCase *tc = support_case(s, "kernel");

	tcase_add_test(tc, adding_reports_the_present_state_at_once);
	tcase_add_test(tc,
		       new_data_makes_an_edge_though_the_last_was_not_consumed);
	tcase_add_test(tc, a_short_recv_is_followed_by_an_edge);
	tcase_add_test(tc, a_short_recv_taken_for_drained_misses_nothing);
	tcase_add_test(tc, a_short_recv_with_the_fin_in_its_edge_is_not);
	tcase_add_test(tc, a_short_recv_with_the_reset_in_its_edge_is_not);
	tcase_add_test(tc, eagain_of_a_send_is_followed_by_an_edge);
	tcase_add_test(tc, a_full_socket_still_tells_of_bytes_and_fin);
	tcase_add_test(tc, a_descriptor_is_watched_once);
	tcase_add_test(tc,
		       a_closed_descriptor_goes_on_reporting_while_a_dup_lives);
	tcase_add_test(tc, a_deleted_descriptor_is_silent_while_a_dup_lives);
	tcase_add_test(tc, an_epoll_descriptor_is_itself_pollable);
	tcase_add_test(tc, a_timer_set_anew_makes_an_edge_though_never_read);
	tcase_add_test(tc, a_timer_disarmed_is_silent);
	tcase_add_test(tc, a_timer_set_to_a_time_past_fires_at_once);
	tcase_add_test(
		tc, every_write_to_an_eventfd_makes_an_edge_though_never_read);
	return support_main(s);
}
