/* SPDX-License-Identifier: MIT */
/*
 * How bytes leave a pipe: when they stall, what a dead or a full socket says,
 * and that there is always another way out.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel/fixture.h"
#include "support/pacer.h"

/* A delayed ack takes 40 ms at least, a tail held back by MORE 200. */
#define QUICK_MS 35

/* What a test needs: bytes come from in[0] to in[1], through the pipe, to
 * out[1], and arrive at out[0]. */
struct route {
	int in[2], pipe[2], out[2];
};

static void route_open(struct route *r)
{
	fixture_pair(r->in);
	fixture_pipe(r->pipe, 65536);
	fixture_pair(r->out);
	peer_nodelay(r->out[1]);
}

static void route_close(struct route *r)
{
	fixture_close(r->in);
	fixture_close(r->pipe);
	fixture_close(r->out);
}

/* Puts @n bytes, up to 4096, into the pipe. */
static void route_fill(struct route *r, size_t n)
{
	char buf[4096] = { 0 };

	peer_says(r->in[0], buf, n);
	await_unread(r->in[1], n);
	ck_assert_int_eq(splice_in(r->in[1], r->pipe, n), n);
}

/* Waits for @n bytes at the far end; returns how long they took since @since.
 * The bytes had better be there: they are not waited for longer than 1 s. */
static int took_ms(struct route *r, size_t n, int64_t since)
{
	char buf[4096];

	ck_assert_uint_le(n, sizeof(buf));
	ck_assert_int_eq(peer_recv_all(r->out[0], buf, n, 1000), n);
	return now_ms() - since;
}

/* Splices @n bytes out with @flags, asking for @more than there are; returns
 * the time of arrival. */
static int pass(struct route *r, size_t n, size_t more, unsigned flags)
{
	int64_t t = now_ms();

	ck_assert_int_eq(splice(r->pipe[0], NULL, r->out[1], NULL, n + more,
				SPLICE_F_NONBLOCK | flags),
			 n);
	return took_ms(r, n, t);
}

/* K8: the last piece of anything may be the last for long, and who sets MORE
 * on it holds it back. */
START_TEST(a_piece_without_more_arrives_at_once)
{
	struct route r;
	int ms = QUICK_MS;

	route_open(&r);
	for (int i = 0; i < 3 && ms >= QUICK_MS; i++) {
		route_fill(&r, 1000);
		ms = pass(&r, 1000, 0, 0);
	}
	ck_assert_int_lt(ms, QUICK_MS);
	route_fill(&r, 1000);
	ms = pass(&r, 1000, 0, SPLICE_F_MORE);
	support_note("without MORE quick, with MORE after %d ms", ms);
	route_close(&r);
}
END_TEST

/* K9: asking for more than the pipe holds looks to the kernel as if more
 * followed, at least when the slots come to a multiple of 16. */
START_TEST(a_full_pipe_drained_by_exact_length_arrives_at_once)
{
	struct route r;
	int ms = QUICK_MS;
	size_t held;

	route_open(&r);
	for (int i = 0; i < 3 && ms >= QUICK_MS; i++) {
		held = fill_slots(r.in, r.pipe, 100);
		ck_assert_int_eq(recv(r.in[1], NULL, 100, MSG_TRUNC), 100);
		ms = pass(&r, held, 0, 0);
	}
	ck_assert_int_lt(ms, QUICK_MS);
	held = fill_slots(r.in, r.pipe, 100);
	ms = pass(&r, held, 1, 0);
	support_note("%zu bytes, exact length quick, one more after %d ms",
		     held, ms);
	route_close(&r);
}
END_TEST

/*
 * Request and answer in turn make the receiver delay its acks. Then two small
 * pieces: with Nagle's algorithm the second waits for the ack of the first.
 */
static int two_pieces(int nodelay)
{
	struct route r;
	int64_t t;
	char c;

	route_open(&r);
	ck_assert_int_eq(setsockopt(r.out[1], IPPROTO_TCP, TCP_NODELAY,
				    &nodelay, sizeof(nodelay)),
			 0);
	for (int i = 0; i < 20; i++) {
		route_fill(&r, 10);
		pass(&r, 10, 0, 0);
		peer_says(r.out[0], "x", 1);
		ck_assert_int_eq(peer_recv_all(r.out[1], &c, 1, SOON_MS), 1);
	}
	route_fill(&r, 10);
	route_fill(&r, 10);
	t = now_ms();
	ck_assert_int_eq(splice_out(r.pipe, r.out[1], 10), 10);
	ck_assert_int_eq(splice_out(r.pipe, r.out[1], 10), 10);
	t = took_ms(&r, 20, t);
	route_close(&r);
	return t;
}

/* K8 */
START_TEST(a_second_small_piece_arrives_at_once_with_nodelay)
{
	int ms = QUICK_MS;

	for (int i = 0; i < 3 && ms >= QUICK_MS; i++)
		ms = two_pieces(1);
	ck_assert_int_lt(ms, QUICK_MS);
	support_note("with TCP_NODELAY quick, without after %d ms",
		     two_pieces(0));
}
END_TEST

static volatile sig_atomic_t sigpipes;

static void count_sigpipe(int sig)
{
	sigpipes++;
}

/* K11: the first call takes the error of the RST away, all later ones find a
 * socket that is shut. */
START_TEST(a_splice_to_a_dead_socket_raises_sigpipe_unless_ignored)
{
	struct route r;

	route_open(&r);
	route_fill(&r, 10);
	peer_reset(r.out[0]);
	await_reset(r.out[1]);
	signal(SIGPIPE, count_sigpipe);
	ck_assert_int_eq(splice_out(r.pipe, r.out[1], 10), -ECONNRESET);
	ck_assert_int_eq(sigpipes, 0);
	ck_assert_int_eq(splice_out(r.pipe, r.out[1], 10), -EPIPE);
	ck_assert_int_eq(sigpipes, 1);
	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(splice_out(r.pipe, r.out[1], 10), -EPIPE);
	close(r.out[1]);
	fixture_close(r.pipe);
	fixture_close(r.in);
}
END_TEST

/* The bytes refused by a dead socket are still in the pipe: it is closed, or
 * emptied, never lent again as it is. */
START_TEST(a_refused_splice_leaves_the_bytes_in_the_pipe)
{
	struct route r;
	int held;

	route_open(&r);
	route_fill(&r, 10);
	shutdown(r.out[1], SHUT_WR);
	ck_assert_int_eq(splice_out(r.pipe, r.out[1], 10), -EPIPE);
	ck_assert_int_eq(ioctl(r.pipe[0], FIONREAD, &held), 0);
	ck_assert_int_eq(held, 10);
	route_close(&r);
}
END_TEST

/* The wait for a sink that is full: EAGAIN, and an edge when its peer has read
 * enough. K10: O_NONBLOCK of the socket keeps splice(2) from waiting. */
START_TEST(a_splice_to_a_full_socket_is_followed_by_an_edge)
{
	size_t sent, left;
	struct route r;
	ssize_t n;
	int ep;

	route_open(&r);
	ep = edge_watch(r.out[1], EDGE_ALL);
	sent = fill_socket(r.out[1]);
	while (edge_next(ep, NEVER_MS))
		;
	/* where send() has no room, splice(2) may have some, for a while */
	do {
		left = 1000;
		route_fill(&r, left);
		while ((n = splice_out(r.pipe, r.out[1], left)) > 0) {
			left -= n;
			sent += n;
		}
	} while (!left);
	ck_assert_int_eq(n, -EAGAIN);
	ck_assert_uint_eq(edge_next(ep, NEVER_MS), 0);
	peer_gets(r.out[0], sent);
	edge_until(ep, EPOLLOUT);
	ck_assert_int_eq(splice_out(r.pipe, r.out[1], left), left);
	peer_gets(r.out[0], left);
	close(ep);
	route_close(&r);
}
END_TEST

/* A drain stops somewhere inside of a pipe, goes on from there, and loses
 * nothing: each short splice ends in an EAGAIN, each EAGAIN in an edge. */
START_TEST(drains_cut_short_keep_every_byte_in_order)
{
	struct pacer up = { .stream = 1, .size = 20000000, .end = 1 };
	struct pacer down = { .stream = 1,
			      .size = 20000000,
			      .chunk = 50000,
			      .pause_us = 500,
			      .end = 1 };
	struct route r;
	ssize_t held;
	int ep, cuts = 0;

	route_open(&r);
	peer_small_buffers(r.out[1], 40000);
	ep = edge_watch(r.out[1], EDGE_ALL);
	up.fd = r.in[0];
	down.fd = r.out[0];
	pacer_start_recv(&down);
	pacer_start_send(&up);
	do {
		ck_assert_int_gt(peer_wait(r.in[1], POLLIN, SOON_MS), 0);
		held = splice_in(r.in[1], r.pipe, 1 << 20);
		ck_assert_int_ge(held, 0);
		for (ssize_t left = held; left;) {
			ssize_t n = splice_out(r.pipe, r.out[1], left);

			if (n == -EAGAIN) {
				cuts += left < held;
				ck_assert_uint_ne(edge_next(ep, SOON_MS), 0);
				continue;
			}
			ck_assert_int_gt(n, 0);
			left -= n;
		}
	} while (held);
	shutdown(r.out[1], SHUT_WR);
	pacer_join(&up);
	pacer_join(&down);
	support_note("%d drains cut short", cuts);
	ck_assert_int_gt(cuts, 0);
	close(ep);
	route_close(&r);
}
END_TEST

/* K34: what came by splice(2) can be spilled into memory, all or a part. */
START_TEST(read_brings_spliced_bytes_to_user_memory)
{
	struct pacer up = { .stream = 5, .size = 200000 };
	static char buf[200000];
	uint64_t at = 0;
	struct route r;

	route_open(&r);
	up.fd = r.in[0];
	pacer_start_send(&up);
	while (at < up.size) {
		ssize_t n, k, sum = 0;

		ck_assert_int_gt(peer_wait(r.in[1], POLLIN, SOON_MS), 0);
		n = splice_in(r.in[1], r.pipe, 1 << 20);
		ck_assert_int_gt(n, 0);
		while (sum < n) {
			k = read(r.pipe[0], buf + sum, sum ? n : n / 2 + 1);
			ck_assert_int_gt(k, 0);
			sum += k;
		}
		ck_assert_int_eq(sum, n);
		ck_assert_int_eq(stamp_check(buf, 5, at, n), -1);
		at += n;
	}
	pacer_join(&up);
	ck_assert_int_eq(read(r.pipe[0], buf, 1), -1);
	ck_assert_int_eq(errno, EAGAIN);
	route_close(&r);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("splice_out");
	TCase *tc = support_case(s, "kernel");

	tcase_add_test(tc, a_piece_without_more_arrives_at_once);
	tcase_add_test(tc, a_full_pipe_drained_by_exact_length_arrives_at_once);
	tcase_add_test(tc, a_second_small_piece_arrives_at_once_with_nodelay);
	tcase_add_test(tc,
		       a_splice_to_a_dead_socket_raises_sigpipe_unless_ignored);
	tcase_add_test(tc, a_refused_splice_leaves_the_bytes_in_the_pipe);
	tcase_add_test(tc, a_splice_to_a_full_socket_is_followed_by_an_edge);
	tcase_add_test(tc, drains_cut_short_keep_every_byte_in_order);
	tcase_add_test(tc, read_brings_spliced_bytes_to_user_memory);
	return support_main(s);
}
