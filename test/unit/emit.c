/* SPDX-License-Identifier: MIT */
/*
 * Text for a descriptor that may be full, and may block.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/emit.h"
#include "support/peer.h"
#include "support/suite.h"

#define PAGES 4
#define ROOM  (PAGES * PIPE_BUF)

/* A blocking pipe with room for ROOM bytes. */
static void small_pipe(int fd[2])
{
	ck_assert_int_eq(pipe2(fd, O_CLOEXEC), 0);
	ck_assert_int_eq(fcntl(fd[1], F_SETPIPE_SZ, ROOM), ROOM);
}

static void fill(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		text[i] = (char)('a' + i % 23);
}

START_TEST(a_long_text_arrives_whole_and_in_order)
{
	char text[ROOM], got[ROOM];
	int fd[2];

	small_pipe(fd);
	fill(text, sizeof(text));
	ck_assert(emit(fd[1], text, sizeof(text), 0));
	ck_assert_int_eq(read(fd[0], got, sizeof(got)), ROOM);
	ck_assert_int_eq(memcmp(got, text, sizeof(text)), 0);
	close(fd[0]);
	close(fd[1]);
}
END_TEST

/* What would block is the write(2): poll(2) calls a pipe with one page writable. */
START_TEST(a_text_longer_than_the_room_does_not_block)
{
	char text[ROOM + 1], got[ROOM + 1];
	int64_t start = now_ms();
	int fd[2];

	small_pipe(fd);
	fill(text, sizeof(text));
	ck_assert(!emit(fd[1], text, sizeof(text), 0));
	ck_assert(!emit(fd[1], text, 1, 0));
	ck_assert_int_lt(now_ms() - start, 2000);
	ck_assert_int_eq(read(fd[0], got, sizeof(got)), ROOM);
	ck_assert_int_eq(memcmp(got, text, ROOM), 0);
	close(fd[0]);
	close(fd[1]);
}
END_TEST

START_TEST(it_waits_for_room_as_long_as_it_is_told)
{
	char text[ROOM];
	int64_t start;
	int fd[2];

	small_pipe(fd);
	fill(text, sizeof(text));
	ck_assert(emit(fd[1], text, sizeof(text), 0));
	start = now_ms();
	ck_assert(!emit(fd[1], text, 1, 300));
	ck_assert_int_ge(now_ms() - start, 299);
	close(fd[0]);
	close(fd[1]);
}
END_TEST

START_TEST(who_does_not_listen_any_more_is_told_nothing)
{
	int fd[2];

	small_pipe(fd);
	close(fd[0]);
	ck_assert(!emit(fd[1], "text", 4, 0));
	close(fd[1]);
	ck_assert(!emit(-1, "text", 4, 0));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("emit");
	TCase *tc = support_case(s, "emit");

	tcase_add_test(tc, a_long_text_arrives_whole_and_in_order);
	tcase_add_test(tc, a_text_longer_than_the_room_does_not_block);
	tcase_add_test(tc, it_waits_for_room_as_long_as_it_is_told);
	tcase_add_test(tc, who_does_not_listen_any_more_is_told_nothing);
	return support_main(s);
}
