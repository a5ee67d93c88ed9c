/* SPDX-License-Identifier: MIT */
/*
 * What io_uring does to urgent data, and when a request that does not wait is over.
 */
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel/fixture.h"

static void fixture_open(struct io_uring *ring, int fd[2])
{
	int one = 1;

	ck_assert_int_eq(io_uring_queue_init(8, ring, 0), 0);
	fixture_pair(fd);
	ck_assert_int_eq(setsockopt(fd[1], SOL_SOCKET, SO_OOBINLINE, &one,
				    sizeof(one)),
			 0);
}

static void fixture_end(struct io_uring *ring, int fd[2])
{
	io_uring_queue_exit(ring);
	fixture_close(fd);
}

static struct io_uring_sqe *request(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	ck_assert_ptr_nonnull(sqe);
	return sqe;
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

/* Return: what the only request came to, which is over when the call returns. */
static int result_now(struct io_uring *ring)
{
	ck_assert_int_eq(io_uring_submit(ring), 1);
	ck_assert_uint_eq(io_uring_cq_ready(ring), 1);
	return result(ring);
}

static int read_now(struct io_uring *ring, int fd)
{
	char buf[8];

	io_uring_prep_recv(request(ring), fd, buf, sizeof(buf), MSG_DONTWAIT);
	return result_now(ring);
}

static int write_now(struct io_uring *ring, int fd, const void *buf, size_t n)
{
	io_uring_prep_send(request(ring), fd, buf, n,
			   MSG_DONTWAIT | MSG_NOSIGNAL);
	return result_now(ring);
}

START_TEST(a_receive_that_waits_takes_an_urgent_byte_for_an_ordinary_one)
{
	struct io_uring ring;
	int fd[2], at = 1;
	char buf[8];

	fixture_open(&ring, fd);
	io_uring_prep_recv(request(&ring), fd[1], buf, sizeof(buf), 0);
	ck_assert_int_eq(io_uring_submit(&ring), 1);
	ck_assert_int_eq(send(fd[0], "U", 1, MSG_OOB), 1);
	ck_assert_int_eq(result(&ring), 1);
	ck_assert_int_eq(buf[0], 'U');
	/* and there is nothing left to tell of it */
	ck_assert_int_eq(ioctl(fd[1], SIOCATMARK, &at), 0);
	ck_assert_int_eq(at, 0);
	ck_assert_int_eq(peer_wait(fd[1], POLLPRI, NEVER_MS), -ETIMEDOUT);
	fixture_end(&ring, fd);
}
END_TEST

START_TEST(a_receive_that_does_not_wait_stops_at_a_mark)
{
	struct io_uring ring;
	int fd[2];

	fixture_open(&ring, fd);
	peer_says(fd[0], "abc", 3);
	ck_assert_int_eq(send(fd[0], "U", 1, MSG_OOB), 1);
	ck_assert_int_gt(peer_wait(fd[1], POLLPRI, SOON_MS), 0);
	ck_assert_int_eq(read_now(&ring, fd[1]), 3);
	ck_assert_int_gt(peer_wait(fd[1], POLLPRI, SOON_MS), 0);
	fixture_end(&ring, fd);
}
END_TEST

START_TEST(a_receive_that_does_not_wait_is_over_when_submitted)
{
	struct io_uring ring;
	int fd[2];

	fixture_open(&ring, fd);
	ck_assert_int_eq(read_now(&ring, fd[1]), -EAGAIN);
	peer_says(fd[0], "abc", 3);
	ck_assert_int_gt(peer_wait(fd[1], POLLIN, SOON_MS), 0);
	ck_assert_int_eq(read_now(&ring, fd[1]), 3);
	peer_reset(fd[0]);
	fd[0] = -1;
	ck_assert_int_gt(peer_wait(fd[1], POLLRDHUP, SOON_MS), 0);
	ck_assert_int_eq(read_now(&ring, fd[1]), -ECONNRESET);
	ck_assert_int_eq(read_now(&ring, fd[1]), 0);
	fixture_end(&ring, fd);
}
END_TEST

/* Nor is the rest of a send that could not take all. */
START_TEST(a_send_that_does_not_wait_is_over_when_submitted)
{
	static char much[1 << 20];
	struct io_uring ring;
	int fd[2], n;

	fixture_open(&ring, fd);
	ck_assert_int_eq(write_now(&ring, fd[0], "abc", 3), 3);
	do
		n = write_now(&ring, fd[0], much, sizeof(much));
	while (n > 0);
	ck_assert_int_eq(n, -EAGAIN);
	peer_reset(fd[1]);
	fd[1] = -1;
	ck_assert_int_gt(peer_wait(fd[0], POLLRDHUP, SOON_MS), 0);
	ck_assert_int_lt(write_now(&ring, fd[0], "abc", 3), 0);
	fixture_end(&ring, fd);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("uring");
	TCase *tc = support_case(s, "kernel");
	struct io_uring ring;
	int err = io_uring_queue_init(8, &ring, 0);

	if (err) {
		printf("1..0 # SKIP io_uring refused: error %d\n", -err);
		return 0;
	}
	io_uring_queue_exit(&ring);
	tcase_add_test(
		tc,
		a_receive_that_waits_takes_an_urgent_byte_for_an_ordinary_one);
	tcase_add_test(tc, a_receive_that_does_not_wait_stops_at_a_mark);
	tcase_add_test(tc, a_receive_that_does_not_wait_is_over_when_submitted);
	tcase_add_test(tc, a_send_that_does_not_wait_is_over_when_submitted);
	return support_main(s);
}
