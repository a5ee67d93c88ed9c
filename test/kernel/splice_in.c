/* SPDX-License-Identifier: MIT */
/*
 * What splice(2) from a socket into a pipe says, and what it does not say: the
 * reason why a pipe is filled only when it is empty.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel/fixture.h"
#include "support/pacer.h"

static void empty(int pipe[2], size_t held)
{
	char buf[4096];

	while (held) {
		ssize_t n = read(pipe[0], buf, sizeof(buf));

		ck_assert_int_gt(n, 0);
		held -= n;
	}
}

/* K1: each piece that is spliced takes a slot, however small. Nobody can tell
 * from the bytes held whether a pipe has room. */
START_TEST(a_pipe_is_full_by_slots_not_bytes)
{
	int fd[2], p[2], in_pipe;
	size_t held;

	fixture_pair(fd);
	fixture_pipe(p, 65536);
	held = fill_slots(fd, p, 1);
	support_note("64 KiB pipe: full with %zu bytes", held);
	ck_assert_uint_gt(held, 0);
	ck_assert_uint_lt(held, 4096);
	ck_assert_int_eq(ioctl(p[0], FIONREAD, &in_pipe), 0);
	ck_assert_int_eq(in_pipe, held);
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

/* Splices what a busy sender sends until a 64 KiB pipe is full. */
static size_t top_up(void)
{
	struct pacer up = { .size = UINT64_MAX };
	int fd[2], p[2];
	size_t held = 0;
	ssize_t n;

	fixture_pair(fd);
	fixture_pipe(p, 65536);
	up.fd = fd[0];
	pacer_start_send(&up);
	for (;;) {
		/* there is something: EAGAIN can only be about the pipe */
		ck_assert_int_gt(peer_wait(fd[1], POLLIN, SOON_MS), 0);
		n = splice_in(fd[1], p, 1 << 20);
		if (n == -EAGAIN)
			break;
		ck_assert_int_gt(n, 0);
		held += n;
	}
	peer_reset(fd[1]); /* frees the sender */
	ck_assert_int_lt(pacer_wait(&up), 0);
	close(fd[0]);
	fixture_close(p);
	return held;
}

/* K2: a slot holds a whole fragment of the sender's, up to 32 KiB, so that a
 * pipe holds more than its size. Where memory is in pieces the fragments are
 * smaller; one time in five is enough. */
START_TEST(a_pipe_topped_up_holds_more_than_its_size)
{
	size_t held = 0;

	for (int i = 0; i < 5 && held <= 65536; i++) {
		held = top_up();
		support_note("64 KiB pipe: full with %zu bytes", held);
	}
	ck_assert_uint_gt(held, 65536);
}
END_TEST

/* The memory of a lane is bounded by what it asks of one fill. No more is said
 * than a window of 64 KiB lets in before anybody reads: Linux 6.1 opens with
 * that, and leaves it at little more until then; 6.18 takes 100,000 bytes. */
START_TEST(one_fill_takes_no_more_than_it_asks_for)
{
	static const char buf[60000];
	int fd[2], p[2];

	fixture_pair(fd);
	fixture_pipe(p, 0);
	peer_says(fd[0], buf, sizeof(buf));
	await_unread(fd[1], sizeof(buf));
	ck_assert_int_eq(splice_in(fd[1], p, 30001), 30001);
	ck_assert_int_eq(peer_unread(fd[1]), sizeof(buf) - 30001);
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

/* K3 */
START_TEST(a_slot_partly_drained_stays_occupied)
{
	int fd[2], p[2], out[2];

	fixture_pair(fd);
	fixture_pair(out);
	fixture_pipe(p, 65536);
	fill_slots(fd, p, 100);
	ck_assert_int_eq(splice_out(p, out[1], 99), 99);
	ck_assert_int_eq(splice_in(fd[1], p, 100), -EAGAIN);
	ck_assert_int_eq(splice_out(p, out[1], 1), 1);
	ck_assert_int_eq(splice_in(fd[1], p, 100), 100);
	fixture_close(p);
	fixture_close(out);
	fixture_close(fd);
}
END_TEST

/* K4: a relay that took this EAGAIN for "the source has nothing" would sleep
 * for ever. */
START_TEST(eagain_of_a_full_pipe_is_not_followed_by_an_edge)
{
	int fd[2], p[2], ep;
	size_t held;

	fixture_pair(fd);
	fixture_pipe(p, 65536);
	ep = edge_watch(fd[1], EDGE_ALL);
	held = fill_slots(fd, p, 1);
	while (edge_next(ep, NEVER_MS))
		;
	ck_assert_int_eq(splice_in(fd[1], p, 1), -EAGAIN);
	empty(p, held);
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	ck_assert_int_eq(splice_in(fd[1], p, 1), 1);
	close(ep);
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

/* The other half of K4, and what the pump stands on: the pipe was empty, so
 * EAGAIN is about the source, and whatever comes later makes an edge. */
START_TEST(eagain_of_an_empty_pipe_is_followed_by_an_edge)
{
	int fd[2], p[2], ep;

	fixture_pair(fd);
	fixture_pipe(p, 65536);
	ep = edge_watch(fd[1], EDGE_ALL);
	for (int i = 0; i < 10; i++) {
		while (edge_next(ep, i ? 0 : NEVER_MS))
			;
		ck_assert_int_eq(splice_in(fd[1], p, 65536), -EAGAIN);
		peer_says(fd[0], "x", 1);
		ck_assert(edge_next(ep, SOON_MS) & EPOLLIN);
		ck_assert_int_eq(splice_in(fd[1], p, 65536), 1);
		empty(p, 1);
	}
	close(ep);
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

/* The same against a sender that comes and goes as it likes: no edge is ever
 * missed, and a short splice says nothing about what is left. */
START_TEST(filling_an_empty_pipe_until_eagain_misses_nothing)
{
	struct pacer up = { .size = 20000000, .chunk = 9000, .end = 1 };
	uint64_t sum = 0;
	int fd[2], p[2], ep;
	ssize_t n;

	fixture_pair(fd);
	fixture_pipe(p, 65536);
	ep = edge_watch(fd[1], EDGE_ALL);
	up.fd = fd[0];
	pacer_start_send(&up);
	do {
		ck_assert_uint_ne(edge_next(ep, SOON_MS), 0);
		while ((n = splice_in(fd[1], p, 65536)) > 0) {
			empty(p, n);
			sum += n;
		}
		ck_assert(!n || n == -EAGAIN);
	} while (n);
	pacer_join(&up);
	ck_assert_uint_eq(sum, up.size);
	close(ep);
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

/* K5: the source must be asked again after each drain, as its FIN may have
 * been announced while the pipe was full. */
START_TEST(a_full_pipe_hides_the_fin)
{
	int fd[2], p[2], ep;
	size_t held;
	char c;

	fixture_pair(fd);
	fixture_pipe(p, 65536);
	held = fill_slots(fd, p, 1);
	ck_assert_int_eq(recv_now(fd[1], &c, 1), 1);
	ep = edge_watch(fd[1], EDGE_ALL);
	shutdown(fd[0], SHUT_WR);
	edge_until(ep, EPOLLIN | EPOLLRDHUP);
	while (edge_next(ep, NEVER_MS))
		;
	ck_assert_int_eq(splice_in(fd[1], p, 65536), -EAGAIN);
	empty(p, held);
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	ck_assert_int_eq(splice_in(fd[1], p, 65536), 0);
	close(ep);
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

/* K6 */
START_TEST(a_splice_of_nothing_looks_like_eof)
{
	int fd[2], p[2];

	fixture_pair(fd);
	fixture_pipe(p, 0);
	ck_assert_int_eq(splice_in(fd[1], p, 0), 0);
	ck_assert_int_eq(splice_in(fd[1], p, 1), -EAGAIN);
	peer_says(fd[0], "x", 1);
	await_unread(fd[1], 1);
	ck_assert_int_eq(splice_in(fd[1], p, 0), 0);
	ck_assert_int_eq(splice_in(fd[1], p, 1), 1);
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

/* K10: SPLICE_F_NONBLOCK is about the pipe. A receive timeout shows the wait
 * of a blocking socket without a thread to end it. */
START_TEST(only_o_nonblock_keeps_a_splice_from_waiting_for_a_socket)
{
	struct timeval tv = { .tv_usec = 300000 };
	int fd[2], p[2];
	int64_t t;

	fixture_pair(fd);
	fixture_pipe(p, 0);
	ck_assert_int_eq(
		setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	ck_assert_int_eq(
		setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	t = now_ms();
	ck_assert_int_eq(splice_in(fd[0], p, 100), -EAGAIN);
	support_note("blocking socket: EAGAIN after %d ms", (int)(now_ms() - t));

	/* a busy machine may be slow once, not always */
	for (int i = 0; i < 5; i++) {
		t = now_ms();
		ck_assert_int_eq(splice_in(fd[1], p, 100), -EAGAIN);
		t = now_ms() - t;
		if (t < 300)
			break;
	}
	ck_assert_int_lt(t, 300);
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

/*
 * K13: a length above SSIZE_MAX is refused (seen in Linux 6.18), or first cut to
 * the room that the pipe has (6.1). So it is no good for "all there is": no fill
 * asks for more than the size of its pipe, and the largest that --pipe-size
 * takes is asked for everywhere. A refusal takes nothing from the socket.
 */
START_TEST(a_length_above_ssize_max_may_be_refused_the_largest_pipe_is_not)
{
	static const size_t above[] = { (size_t)SSIZE_MAX + 1, SIZE_MAX };
	int fd[2], p[2];
	char c;

	fixture_pair(fd);
	fixture_pipe(p, 0);
	for (int i = 0; i < 2; i++) {
		ssize_t n;

		peer_says(fd[0], "x", 1);
		await_unread(fd[1], 1);
		n = splice_in(fd[1], p, above[i]);
		support_note("length %zu: %zd", above[i], n);
		if (n != 1)
			ck_assert_int_eq(n, -EINVAL);
		ck_assert_int_eq(peer_unread(fd[1]), n == 1 ? 0 : 1);
		if (n != 1)
			ck_assert_int_eq(splice_in(fd[1], p, 1 << 30), 1);
		ck_assert_int_eq(read(p[0], &c, 1), 1);
		ck_assert_int_eq(c, 'x');
	}
	peer_says(fd[0], "x", 1);
	await_unread(fd[1], 1);
	ck_assert_int_eq(splice_in(fd[1], p, 1 << 30), 1);
	fixture_close(p);
	fixture_close(fd);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("splice_in");
	TCase *tc = support_case(s, "kernel");

	tcase_add_test(tc, a_pipe_is_full_by_slots_not_bytes);
	tcase_add_test(tc, a_pipe_topped_up_holds_more_than_its_size);
	tcase_add_test(tc, one_fill_takes_no_more_than_it_asks_for);
	tcase_add_test(tc, a_slot_partly_drained_stays_occupied);
	tcase_add_test(tc, eagain_of_a_full_pipe_is_not_followed_by_an_edge);
	tcase_add_test(tc, eagain_of_an_empty_pipe_is_followed_by_an_edge);
	tcase_add_test(tc, filling_an_empty_pipe_until_eagain_misses_nothing);
	tcase_add_test(tc, a_full_pipe_hides_the_fin);
	tcase_add_test(tc, a_splice_of_nothing_looks_like_eof);
	tcase_add_test(tc,
		       only_o_nonblock_keeps_a_splice_from_waiting_for_a_socket);
	tcase_add_test(
		tc,
		a_length_above_ssize_max_may_be_refused_the_largest_pipe_is_not);
	return support_main(s);
}
