/* SPDX-License-Identifier: MIT */
/*
 * The tests' own tools: a checker that misses what it is for would let every
 * other test pass.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/pacer.h"
#include "support/peer.h"
#include "support/stamp.h"
#include "support/suite.h"

#define N 4000

START_TEST(stamps_agree_at_every_offset_and_length)
{
	unsigned char all[200], part[200];

	stamp_fill(all, 7, 1003, sizeof(all));
	for (size_t off = 0; off < 20; off++)
		for (size_t n = 0; n <= 100; n++) {
			stamp_fill(part, 7, 1003 + off, n);
			ck_assert_mem_eq(part, all + off, n);
			ck_assert_int_eq(stamp_check(part, 7, 1003 + off, n), -1);
		}
}
END_TEST

START_TEST(one_wrong_bit_is_found_where_it_is)
{
	unsigned char buf[100];

	for (size_t i = 0; i < sizeof(buf); i++) {
		stamp_fill(buf, 3, 5, sizeof(buf));
		buf[i] ^= 16;
		ck_assert_int_eq(stamp_check(buf, 3, 5, sizeof(buf)), i);
	}
}
END_TEST

/* @gap bytes leave the stream at @at; what follows moves up. */
static void lose(unsigned char *buf, size_t at, size_t gap)
{
	memmove(buf + at, buf + at + gap, N - at - gap);
	stamp_fill(buf + N - gap, 5, 77 + N, gap);
}

static void repeat(unsigned char *buf, size_t at, size_t gap)
{
	memmove(buf + at, buf + at - gap, N - at);
}

static void swap(unsigned char *buf, size_t at, size_t gap)
{
	unsigned char t[100];

	memcpy(t, buf + at, gap);
	memmove(buf + at, buf + at + gap, gap);
	memcpy(buf + at + gap, t, gap);
}

static void garble(unsigned char *buf, size_t at, size_t gap)
{
	memset(buf + at, 'x', gap);
}

static void intrude(unsigned char *buf, size_t at, size_t gap)
{
	stamp_fill(buf + at, 6, 1000 + gap, N - at);
}

static const struct {
	const char *name;
	void (*harm)(unsigned char *buf, size_t at, size_t gap);
} harms[] = {
	{ "lost", lose },      { "repeated", repeat }, { "reordered", swap },
	{ "garbled", garble }, { "foreign", intrude },
};

START_TEST(every_harm_is_called_by_its_name)
{
	unsigned char buf[N];
	char why[STAMP_WHY];

	for (size_t at = 1000; at < 1020; at++)
		for (size_t gap = 24; gap < 100; gap++) {
			stamp_fill(buf, 5, 77, N);
			harms[_i].harm(buf, at, gap);
			stamp_explain(why, sizeof(why), buf, 5, 77, N);
			ck_assert_msg(!strncmp(why, harms[_i].name,
					       strlen(harms[_i].name)),
				      "at %zu, %zu bytes %s: %s", at, gap,
				      harms[_i].name, why);
		}
}
END_TEST

START_TEST(nothing_wrong_is_called_right)
{
	unsigned char buf[N];
	char why[STAMP_WHY];

	stamp_fill(buf, 5, 77, N);
	stamp_explain(why, sizeof(why), buf, 5, 77, N);
	ck_assert_str_eq(why, "right: 4000 bytes of stream 5");
}
END_TEST

START_TEST(pacers_carry_stamps_both_ways)
{
	struct pacer send[2], recv[2];
	int fd[2];

	if (_i)
		tcp_pair6(fd);
	else
		tcp_pair(fd);
	for (int i = 0; i < 2; i++) {
		recv[i] = (struct pacer){ .fd = fd[!i],
					  .stream = i + 1,
					  .offset = 13,
					  .size = 3000001,
					  .chunk = 7000,
					  .end = 1 };
		send[i] = recv[i];
		send[i].fd = fd[i];
		pacer_start_recv(&recv[i]);
		pacer_start_send(&send[i]);
	}
	for (int i = 0; i < 2; i++) {
		pacer_join(&send[i]);
		pacer_join(&recv[i]);
		ck_assert_uint_eq(recv[i].done, 3000001);
	}
	close(fd[0]);
	close(fd[1]);
}
END_TEST

START_TEST(a_pacer_tells_wrong_bytes_from_missing_ones)
{
	struct pacer p = { .stream = 1, .size = 100, .timeout_ms = 50 };
	char buf[100];
	int fd[2];

	tcp_pair(fd);
	p.fd = fd[1];
	stamp_fill(buf, 1, 0, 60);
	ck_assert_int_eq(peer_send_all(fd[0], buf, 60, 1000), 0);
	pacer_start_recv(&p);
	ck_assert_int_eq(pacer_wait(&p), -ETIMEDOUT);
	ck_assert_uint_eq(p.done, 60);

	stamp_fill(buf, 1, 0, 100);
	buf[70] ^= 1;
	ck_assert_int_eq(peer_send_all(fd[0], buf, 100, 1000), 0);
	pacer_start_recv(&p);
	ck_assert_int_eq(pacer_wait(&p), -EBADMSG);
	ck_assert_uint_eq(p.done, 70);

	shutdown(fd[0], SHUT_WR);
	pacer_start_recv(&p);
	ck_assert_int_eq(pacer_wait(&p), -ENODATA);
	close(fd[0]);
	close(fd[1]);
}
END_TEST

START_TEST(silence_bytes_eof_and_reset_are_told_apart)
{
	int fd[2];

	tcp_pair(fd);
	ck_assert_int_eq(peer_expect_silence(fd[1], 20), 0);
	ck_assert_int_eq(peer_expect_eof(fd[1], 20), -ETIMEDOUT);
	ck_assert_int_eq(peer_expect_reset(fd[1], 20), -ETIMEDOUT);
	ck_assert_int_eq(peer_send_all(fd[0], "abcd", 4, 1000), 0);
	ck_assert_int_eq(peer_expect_silence(fd[1], 1000), -EBADMSG);
	ck_assert_int_eq(peer_expect_eof(fd[1], 1000), -EBADMSG);
	ck_assert_int_eq(peer_expect_reset(fd[1], 1000), -EBADMSG);
	ck_assert_int_eq(peer_unread(fd[1]), 2);
	shutdown(fd[0], SHUT_WR);
	ck_assert_int_eq(peer_drain(fd[1], 1000), 2);
	ck_assert_int_eq(peer_expect_silence(fd[1], 1000), -ENODATA);
	ck_assert_int_eq(peer_expect_reset(fd[1], 1000), -ENODATA);
	ck_assert_int_eq(peer_expect_eof(fd[1], 1000), 0);
	close(fd[0]);
	close(fd[1]);

	tcp_pair(fd);
	peer_reset(fd[0]);
	ck_assert_int_eq(peer_expect_reset(fd[1], 1000), 0);
	close(fd[1]);

	tcp_pair(fd);
	peer_reset(fd[0]);
	ck_assert_int_eq(peer_expect_eof(fd[1], 1000), -ECONNRESET);
	close(fd[1]);
}
END_TEST

START_TEST(a_reader_that_stops_meets_the_deadline)
{
	static char buf[8 << 20];
	int fd[2], fds = open_fds();
	int64_t t = now_ms();

	tcp_pair(fd);
	ck_assert_int_eq(open_fds(), fds + 2);
	peer_small_buffers(fd[0], 16384);
	ck_assert_int_eq(peer_send_all(fd[0], buf, sizeof(buf), 50), -ETIMEDOUT);
	ck_assert_int_ge(now_ms() - t, 50);
	ck_assert_int_gt(peer_unacked(fd[0]), 0);
	ck_assert_int_eq(tcp_accept(fd[1], 1000), -EINVAL);
	close(fd[0]);
	close(fd[1]);
	ck_assert_int_eq(open_fds(), fds);
}
END_TEST

START_TEST(nobody_listens_is_told)
{
	int l = tcp_listen("127.0.0.1", 0);
	uint16_t port = tcp_port(l);

	ck_assert_int_eq(tcp_accept(l, 20), -ETIMEDOUT);
	close(l);
	ck_assert_int_eq(tcp_connect("127.0.0.1", port), -ECONNREFUSED);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("support");
	TCase *tc = support_case(s, "support");

	tcase_add_test(tc, stamps_agree_at_every_offset_and_length);
	tcase_add_test(tc, one_wrong_bit_is_found_where_it_is);
	tcase_add_loop_test(tc, every_harm_is_called_by_its_name, 0,
			    sizeof(harms) / sizeof(*harms));
	tcase_add_test(tc, nothing_wrong_is_called_right);
	tcase_add_loop_test(tc, pacers_carry_stamps_both_ways, 0, 2);
	tcase_add_test(tc, a_pacer_tells_wrong_bytes_from_missing_ones);
	tcase_add_test(tc, silence_bytes_eof_and_reset_are_told_apart);
	tcase_add_test(tc, a_reader_that_stops_meets_the_deadline);
	tcase_add_test(tc, nobody_listens_is_told);
	return support_main(s);
}
