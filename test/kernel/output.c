/* SPDX-License-Identifier: MIT */
/*
 * What a write to a log can do to the program that writes it: wait though
 * poll(2) promised room, or kill.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "kernel/fixture.h"

/* Opens a terminal as a program finds it, output processed ("cooked"), with
 * both ends nonblocking. Returns 0, or -1 where there are none. */
static int open_terminal(int *master, int *slave)
{
	struct termios t;

	*master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (*master < 0 || grantpt(*master) || unlockpt(*master))
		return -1;
	*slave = open(ptsname(*master),
		      O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (*slave < 0)
		return -1;
	ck_assert_int_eq(tcgetattr(*slave, &t), 0);
	ck_assert(t.c_oflag & OPOST);
	return 0;
}

/* Writes @n bytes, as a blocking write(2) would, until there has been no room
 * for a while. Returns how many are left. */
static size_t write_patiently(int fd, const char *line, size_t n)
{
	for (int idle = 0; n && idle < 5;) {
		ssize_t k = write(fd, line, n);

		if (k > 0) {
			line += k;
			n -= k;
			idle = 0;
			continue;
		}
		ck_assert_int_eq(k, -1);
		ck_assert_int_eq(errno, EAGAIN);
		idle++;
		sleep_ms(NEVER_MS);
	}
	return n;
}

/* Writes lines of @n bytes for as long as poll(2) says that there is room.
 * Returns what is left of the first that had none, 0 if poll(2) said so. */
static size_t write_lines(int fd, size_t n)
{
	char line[PIPE_BUF];
	size_t left = 0;

	ck_assert_uint_le(n, sizeof(line));
	memset(line, 'x', n - 1);
	line[n - 1] = '\n';
	while (!left && peer_wait(fd, POLLOUT, NEVER_MS) == POLLOUT)
		left = write_patiently(fd, line, n);
	return left;
}

/* K43. The descriptor is nonblocking, so that the test sees the wait and is not
 * held up by it. A line of one length may fit to the last byte: then another is
 * tried. */
START_TEST(a_terminal_that_poll_calls_writable_has_no_room_for_a_line)
{
	size_t left = 0;

	for (size_t n = 4001; !left && n < 4006; n++) {
		int master, slave;

		if (open_terminal(&master, &slave)) {
			support_skip("no pseudoterminals here");
			return;
		}
		left = write_lines(slave, n);
		support_note("%zu of %zu bytes had no room", left, n);
		close(slave);
		close(master);
	}
	ck_assert_uint_gt(left, 0);
}
END_TEST

/* Writes 5 and 5 bytes to a file of at most 8, then one more. Returns the errno
 * of the last write(2), or 0. */
static int exceed_the_limit(void)
{
	struct rlimit none = { 0, 0 }, eight = { 8, 8 };
	int fd = memfd_create("limit", MFD_CLOEXEC);

	if (fd < 0 || setrlimit(RLIMIT_CORE, &none) ||
	    setrlimit(RLIMIT_FSIZE, &eight) || write(fd, "12345", 5) != 5 ||
	    write(fd, "67890", 5) != 3)
		return 1;
	return write(fd, "9", 1) < 0 ? errno : 0;
}

/* K44. The write that reaches the limit is cut short, the next one kills. */
START_TEST(a_write_at_the_file_size_limit_kills_or_if_ignored_says_efbig)
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		signal(SIGXFSZ, _i ? SIG_IGN : SIG_DFL);
		_exit(exceed_the_limit());
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (_i) {
		ck_assert(WIFEXITED(status));
		ck_assert_int_eq(WEXITSTATUS(status), EFBIG);
	} else {
		ck_assert(WIFSIGNALED(status));
		ck_assert_int_eq(WTERMSIG(status), SIGXFSZ);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("output");
	TCase *tc = support_case(s, "kernel");

	tcase_add_test(
		tc, a_terminal_that_poll_calls_writable_has_no_room_for_a_line);
	tcase_add_loop_test(
		tc, a_write_at_the_file_size_limit_kills_or_if_ignored_says_efbig,
		0, 2);
	return support_main(s);
}
