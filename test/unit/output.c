/* SPDX-License-Identifier: MIT */
/*
 * The queue in front of a descriptor that may block, and its thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/output.h"
#include "support/clock.h"
#include "support/peer.h"
#include "support/suite.h"

#define RING	(16 << 10)
#define LONG_MS 20000 /* for what must come */

static char ring[RING];

/* An output to a pipe that holds a page. */
static struct output to_pipe(int fd[2])
{
	ck_assert_int_eq(pipe2(fd, O_CLOEXEC), 0);
	ck_assert_int_eq(fcntl(fd[1], F_SETPIPE_SZ, 4096), 4096);
	return (struct output)OUTPUT_INIT(fd[1], "output", "messages", ring);
}

static void fill(int fd)
{
	char page[4096] = { 0 };

	ck_assert_int_eq(write(fd, page, sizeof(page)), sizeof(page));
}

static void empty(int fd)
{
	char page[4096];

	for (size_t n = 0; n < sizeof(page);) {
		ssize_t got = read(fd, page, sizeof(page) - n);

		ck_assert_int_gt(got, 0);
		n += (size_t)got;
	}
}

static bool put_number(struct output *o, unsigned i)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "number %u\n", i);

	return output_put(o, text, (size_t)len);
}

static void expect(FILE *in, const char *want)
{
	char line[64];

	ck_assert_ptr_nonnull(fgets(line, sizeof(line), in));
	ck_assert_str_eq(line, want);
}

static void expect_number(FILE *in, unsigned i)
{
	char want[32];

	snprintf(want, sizeof(want), "number %u\n", i);
	expect(in, want);
}

START_TEST(all_is_written_in_order_however_often_the_ring_is_filled)
{
	static struct output o;
	int fd[2];
	FILE *in;

	o = to_pipe(fd);
	in = fdopen(fd[0], "r");
	for (unsigned i = 0; i < 20000; i++) {
		ck_assert(put_number(&o, i));
		if (i % 50 == 49)
			for (unsigned k = i - 49; k <= i; k++)
				expect_number(in, k);
	}
	ck_assert(output_flush(&o, LONG_MS, LONG_MS));
	ck_assert_uint_eq(output_dropped(&o), 0);
	fclose(in);
}
END_TEST

START_TEST(a_full_queue_drops_what_comes_counts_it_and_says_so_in_its_place)
{
	static struct output o;
	unsigned taken = 0, dropped = 0;
	char want[64];
	int fd[2];
	FILE *in;

	o = to_pipe(fd);
	fill(fd[1]);
	while (put_number(&o, taken))
		ck_assert_uint_lt(++taken * sizeof("number 1\n"), RING);
	for (dropped = 1; dropped < 100; dropped++)
		ck_assert(!put_number(&o, 0));
	ck_assert_uint_gt(taken, 100);
	ck_assert_uint_eq(output_dropped(&o), dropped);

	empty(fd[0]);
	in = fdopen(fd[0], "r");
	for (unsigned i = 0; i < taken; i++)
		expect_number(in, i);
	snprintf(want, sizeof(want), "sluice: %u messages dropped\n", dropped);
	expect(in, want);
	ck_assert(put_number(&o, 7));
	expect_number(in, 7);
	ck_assert(output_flush(&o, LONG_MS, LONG_MS));
	ck_assert_uint_eq(output_dropped(&o), dropped);
	fclose(in);
}
END_TEST

START_TEST(a_text_longer_than_the_queue_is_dropped_and_one_as_long_is_not)
{
	static char text[RING + 1], got[RING];
	static struct output o;
	unsigned frame = 2 * sizeof(unsigned);
	int fd[2];

	o = to_pipe(fd);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 23);
	o.noun = NULL;
	ck_assert(!output_put(&o, text, RING + 1));
	ck_assert(!output_put(&o, text, RING - frame + 1));
	ck_assert(output_put(&o, text, RING - frame));
	for (size_t n = 0; n < RING - frame;) {
		ssize_t more = read(fd[0], got + n, sizeof(got) - n);

		ck_assert_int_gt(more, 0);
		n += (size_t)more;
	}
	ck_assert_int_eq(memcmp(got, text, RING - frame), 0);
	ck_assert_uint_eq(output_dropped(&o), 2);
}
END_TEST

START_TEST(the_end_waits_for_a_descriptor_that_takes_nothing_as_long_as_it_is_told_and_once)
{
	static struct output o;
	int64_t start;
	int fd[2];

	o = to_pipe(fd);
	ck_assert(output_flush(&o, LONG_MS, LONG_MS));
	fill(fd[1]);
	ck_assert(put_number(&o, 0));
	start = now_ms();
	ck_assert(!output_flush(&o, 200, LONG_MS));
	ck_assert_int_ge(now_ms() - start, 199);
	ck_assert_int_lt(now_ms() - start, LONG_MS);
	ck_assert(!output_flush(&o, LONG_MS, 2 * LONG_MS));
	ck_assert_int_lt(now_ms() - start, LONG_MS);
	empty(fd[0]);
	while (!output_is_empty(&o))
		usleep(1000);
	ck_assert(output_flush(&o, LONG_MS, LONG_MS));
}
END_TEST

START_TEST(what_is_late_is_dropped_and_counted_once)
{
	static struct output o;
	int fd[2];
	FILE *in;

	o = to_pipe(fd);
	o.noun = NULL;
	fill(fd[1]);
	for (unsigned i = 0; i < 5; i++)
		ck_assert(put_number(&o, i));
	ck_assert_uint_eq(output_drop_late(&o, LONG_MS), 0);
	usleep(2000);
	ck_assert_uint_eq(output_drop_late(&o, 1), 5);
	ck_assert_uint_eq(output_drop_late(&o, 1), 0);
	ck_assert(put_number(&o, 5));
	ck_assert_uint_eq(output_drop_late(&o, 1), 1);
	ck_assert(put_number(&o, 6));
	empty(fd[0]);
	in = fdopen(fd[0], "r");
	expect_number(in, 0); /* was in write(2) already */
	expect_number(in, 6);
	ck_assert_uint_eq(output_dropped(&o), 6);
	fclose(in);
}
END_TEST

static void *shout(void *arg)
{
	for (unsigned i = 0; i < 5000; i++)
		(void)output_put(arg, "word\n", 5);
	return NULL;
}

START_TEST(several_threads_may_put_and_each_text_is_written_or_counted)
{
	static struct output o;
	pthread_t threads[4];
	unsigned words = 0, told = 0, n;
	int fd[2];
	char line[64];
	FILE *in;

	o = to_pipe(fd);
	in = fdopen(fd[0], "r");
	for (unsigned i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, shout, &o);
	while (words + told < 20000 && fgets(line, sizeof(line), in)) {
		if (sscanf(line, "sluice: %u messages dropped\n", &n) == 1)
			told += n;
		else
			words++;
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(words + told, 20000);
	ck_assert_uint_eq(output_dropped(&o), told);
	fclose(in);
}
END_TEST

/* By SIG_DFL: the signal would end this. */
START_TEST(a_reader_that_has_gone_ends_nothing)
{
	static struct output o;
	int fd[2];

	signal(SIGPIPE, SIG_DFL);
	o = to_pipe(fd);
	close(fd[0]);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(put_number(&o, i));
	ck_assert(output_flush(&o, LONG_MS, LONG_MS));
	ck_assert_uint_eq(output_dropped(&o), 3);
}
END_TEST

/* Check has a file of its own, which must not grow meanwhile. */
static bool put_with_limit(struct output *o, unsigned n, rlim_t bytes)
{
	struct rlimit limit, before;
	bool flushed;

	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = bytes;
	setrlimit(RLIMIT_FSIZE, &limit);
	for (unsigned i = 0; i < n; i++)
		(void)put_number(o, i);
	flushed = output_flush(o, LONG_MS, LONG_MS);
	setrlimit(RLIMIT_FSIZE, &before);
	return flushed;
}

START_TEST(a_file_at_its_limit_ends_nothing_and_no_part_of_a_text_looks_like_one)
{
	char path[] = "/tmp/sluice-test-XXXXXX", got[256] = { 0 };
	static struct output o;
	int fd = mkstemp(path);

	signal(SIGXFSZ, SIG_DFL);
	unlink(path);
	ck_assert_int_eq(fcntl(fd, F_SETFL, O_APPEND), 0);
	o = (struct output)OUTPUT_INIT(fd, "output", "messages", ring);
	ck_assert(put_with_limit(&o, 14, 104)); /* 11 and a part of one */
	ck_assert_uint_eq(output_dropped(&o), 3);
	ck_assert(put_number(&o, 9));
	ck_assert(output_flush(&o, LONG_MS, LONG_MS));
	ck_assert_int_gt(pread(fd, got, sizeof(got) - 1, 90), 0);
	ck_assert_str_eq(got, "number 10\nnumb\n"
			      "sluice: 3 messages dropped\nnumber 9\n");
	close(fd);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("output");
	TCase *tc = support_case(s, "output");

	tcase_add_test(tc,
		       all_is_written_in_order_however_often_the_ring_is_filled);
	tcase_add_test(
		tc,
		a_full_queue_drops_what_comes_counts_it_and_says_so_in_its_place);
	tcase_add_test(
		tc,
		a_text_longer_than_the_queue_is_dropped_and_one_as_long_is_not);
	tcase_add_test(
		tc,
		the_end_waits_for_a_descriptor_that_takes_nothing_as_long_as_it_is_told_and_once);
	tcase_add_test(tc, what_is_late_is_dropped_and_counted_once);
	tcase_add_test(
		tc, several_threads_may_put_and_each_text_is_written_or_counted);
	tcase_add_test(tc, a_reader_that_has_gone_ends_nothing);
	tcase_add_test(
		tc,
		a_file_at_its_limit_ends_nothing_and_no_part_of_a_text_looks_like_one);
	return support_main(s);
}
