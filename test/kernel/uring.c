/* SPDX-License-Identifier: MIT */
/*
 * What io_uring does to urgent data, and how it tells that it has work.
 */
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel/fixture.h"

#define DEFERRED (IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)

/* A ring, and a receive that waits in it for what fd[1] is sent. */
static void fixture_waits(struct io_uring *ring, unsigned flags, int fd[2],
			  char *buf, size_t n)
{
	struct io_uring_sqe *sqe;
	int one = 1;

	ck_assert_int_eq(io_uring_queue_init(8, ring, flags), 0);
	fixture_pair(fd);
	ck_assert_int_eq(setsockopt(fd[1], SOL_SOCKET, SO_OOBINLINE, &one,
				    sizeof(one)),
			 0);
	sqe = io_uring_get_sqe(ring);
	ck_assert_ptr_nonnull(sqe);
	io_uring_prep_recv(sqe, fd[1], buf, n, 0);
	ck_assert_int_eq(io_uring_submit(ring), 1);
}

/* Asks for whatever is in flight to end. */
static void cancel(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	ck_assert_ptr_nonnull(sqe);
	io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ANY);
	ck_assert_int_eq(io_uring_submit(ring), 1);
}

static int result(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int res;

	ck_assert_int_eq(io_uring_wait_cqe(ring, &cqe), 0);
	res = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return res;
}

START_TEST(a_receive_that_waits_takes_an_urgent_byte_for_an_ordinary_one)
{
	struct io_uring ring;
	int fd[2], at = 1;
	char buf[8];

	fixture_waits(&ring, 0, fd, buf, sizeof(buf));
	ck_assert_int_eq(send(fd[0], "U", 1, MSG_OOB), 1);
	ck_assert_int_eq(result(&ring), 1);
	ck_assert_int_eq(buf[0], 'U');
	/* and there is nothing left to tell of it */
	ck_assert_int_eq(ioctl(fd[1], SIOCATMARK, &at), 0);
	ck_assert_int_eq(at, 0);
	ck_assert_int_eq(peer_wait(fd[1], POLLPRI, NEVER_MS), -ETIMEDOUT);
	io_uring_queue_exit(&ring);
	fixture_close(fd);
}
END_TEST

START_TEST(a_receive_whose_run_is_deferred_can_be_canceled_before_it_takes_it)
{
	struct io_uring ring;
	int fd[2], at;
	char buf[8];

	fixture_waits(&ring, DEFERRED, fd, buf, sizeof(buf));
	ck_assert_int_eq(send(fd[0], "U", 1, MSG_OOB), 1);
	ck_assert_int_gt(peer_wait(fd[1], POLLPRI, SOON_MS), 0);
	cancel(&ring);
	result(&ring); /* one of the two, then the other */
	result(&ring);
	ck_assert_int_eq(ioctl(fd[1], SIOCATMARK, &at), 0);
	ck_assert_int_eq(at, 1);
	ck_assert_int_eq(peer_unread(fd[1]), 1);
	io_uring_queue_exit(&ring);
	fixture_close(fd);
}
END_TEST

START_TEST(an_eventfd_tells_of_work_that_is_deferred)
{
	int bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), ep, fd[2];
	struct io_uring ring;
	char buf[8];

	fixture_waits(&ring, DEFERRED, fd, buf, sizeof(buf));
	ck_assert_int_eq(io_uring_register_eventfd(&ring, bell), 0);
	ep = edge_watch(bell, EPOLLIN | EPOLLET);
	peer_says(fd[0], "abc", 3);
	ck_assert_uint_eq(edge_next(ep, SOON_MS), EPOLLIN);
	ck_assert_uint_eq(io_uring_cq_ready(&ring), 0); /* not done yet */
	ck_assert_int_eq(io_uring_get_events(&ring), 0);
	ck_assert_int_eq(result(&ring), 3);
	io_uring_queue_exit(&ring);
	close(ep);
	close(bell);
	fixture_close(fd);
}
END_TEST

START_TEST(a_request_in_flight_holds_its_socket_open)
{
	struct io_uring ring;
	int fd[2];
	char buf[8];

	fixture_waits(&ring, DEFERRED, fd, buf, sizeof(buf));
	close(fd[1]);
	ck_assert_int_eq(peer_expect_silence(fd[0], NEVER_MS), 0);
	cancel(&ring);
	result(&ring);
	result(&ring);
	ck_assert_int_eq(peer_expect_eof(fd[0], SOON_MS), 0);
	io_uring_queue_exit(&ring);
	close(fd[0]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("uring");
	TCase *tc = support_case(s, "kernel");
	struct io_uring ring;
	int err = io_uring_queue_init(8, &ring, DEFERRED);

	if (err) {
		printf("1..0 # SKIP io_uring refused: error %d\n", -err);
		return 0;
	}
	io_uring_queue_exit(&ring);
	tcase_add_test(
		tc,
		a_receive_that_waits_takes_an_urgent_byte_for_an_ordinary_one);
	tcase_add_test(
		tc,
		a_receive_whose_run_is_deferred_can_be_canceled_before_it_takes_it);
	tcase_add_test(tc, an_eventfd_tells_of_work_that_is_deferred);
	tcase_add_test(tc, a_request_in_flight_holds_its_socket_open);
	return support_main(s);
}
