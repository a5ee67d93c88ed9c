/* SPDX-License-Identifier: MIT */
/*
 * K12 and K36: the pipe pages that an ordinary user may have
 * (fs.pipe-user-pages-soft), and what becomes of pipes beyond them.
 *
 * A capability hides all of it, so as root a child becomes nobody first. The
 * child only looks; what it saw comes back in shared memory and is judged by
 * the test.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/fixture.h"

#define NOBODY 65534
#define BIG    (1 << 20)
/* more than the usual quota is good for: 64 of them */
#define MANY 200

/* sizes in bytes, or a negative errno */
struct seen {
	int finished;
	int error;	  /* of what should not fail, a negative errno */
	int big;	  /* pipes of 1 MiB that were to be had */
	int grow_error;	  /* of the first that was not */
	int grow_size;	  /* its size after that */
	int default_size; /* of new pipes, the quota being used up */
	int small_grow;	  /* such a one, asked to grow to 64 KiB */
	int small_shrink; /* and to shrink to one page */
	int moved;	  /* bytes such a one carried */
	int one_back;	  /* 1 MiB, once one of the big ones has been closed */
	int two_back;	  /* and once two have */
};

static struct seen *seen;

static int new_pipe(int pipe[2])
{
	return pipe2(pipe, O_NONBLOCK | O_CLOEXEC) ? -errno : 0;
}

static int grow(int pipe[2], int size)
{
	int n = fcntl(pipe[1], F_SETPIPE_SZ, size);

	return n < 0 ? -errno : n;
}

static int size_of(int pipe[2])
{
	return fcntl(pipe[1], F_GETPIPE_SZ);
}

static int become_nobody(void)
{
	struct rlimit r = { 4 * MANY, 4 * MANY };

	setrlimit(RLIMIT_NOFILE, &r);
	if (geteuid())
		return 0; /* as it is, then */
	if (setgid(NOBODY) || setuid(NOBODY))
		return -errno;
	return 0;
}

static void use_the_quota_up(int pipes[MANY][2])
{
	int n;

	for (n = 0; n < MANY && !seen->error; n++) {
		seen->error = new_pipe(pipes[n]);
		if (seen->error)
			return;
		seen->grow_error = grow(pipes[n], BIG);
		seen->grow_size = size_of(pipes[n]);
		if (seen->grow_error < 0)
			break;
	}
	seen->big = n;
}

static void look(void)
{
	static int pipes[MANY][2];
	int small[2], filler[2];

	seen->error = become_nobody();
	if (seen->error)
		return;
	use_the_quota_up(pipes);
	/* pipes as they come take what is left of it */
	for (int i = 0; i < MANY; i++) {
		seen->error = new_pipe(filler);
		if (seen->error)
			return;
		if (size_of(filler) < 65536)
			break;
	}
	seen->error = new_pipe(small);
	if (seen->error)
		return;
	seen->default_size = size_of(small);
	seen->small_grow = grow(small, 65536);
	seen->moved = write(small[1], "hello", 5);
	seen->small_shrink = grow(small, 4096);
	if (seen->big < 2)
		return;
	fixture_close(pipes[0]);
	seen->one_back = grow(small, BIG);
	fixture_close(pipes[1]);
	seen->two_back = grow(small, BIG);
}

static void look_as_nobody(void)
{
	int status;
	pid_t pid;

	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(seen, MAP_FAILED);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		look();
		seen->finished = 1;
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(seen->finished, 1);
	ck_assert_int_eq(seen->error, 0);
}

/* The pages a user may have; 0 is no limit. */
static long soft_limit(void)
{
	FILE *f = fopen("/proc/sys/fs/pipe-user-pages-soft", "r");
	long pages = 0;

	if (!f || fscanf(f, "%ld", &pages) != 1)
		ck_abort_msg("pipe-user-pages-soft: %m");
	fclose(f);
	return pages;
}

/* With an unusual limit there is nothing to be seen, and that is said. */
static int quota_can_be_met(void)
{
	long pages = soft_limit(), page = sysconf(_SC_PAGESIZE);

	if (pages && pages * page < (long)BIG * MANY)
		return 1;
	support_skip("no quota of pipe pages, or a very big one");
	return 0;
}

START_TEST(past_the_quota_a_pipe_does_not_grow)
{
	if (!quota_can_be_met())
		return;
	look_as_nobody();
	support_note("%d pipes of 1 MiB, then of %d", seen->big, seen->grow_size);
	ck_assert_int_lt(seen->big, MANY);
	ck_assert_int_eq(seen->grow_error, -EPERM);
	ck_assert_int_lt(seen->grow_size, BIG);
}
END_TEST

/* That is why the size is read back. */
START_TEST(past_the_quota_a_new_pipe_is_tiny)
{
	if (!quota_can_be_met())
		return;
	look_as_nobody();
	support_note("new pipes have %d bytes", seen->default_size);
	ck_assert_int_gt(seen->default_size, 0);
	ck_assert_int_le(seen->default_size, 2 * sysconf(_SC_PAGESIZE));
	ck_assert_int_eq(seen->small_grow, -EPERM);
	ck_assert_int_eq(seen->moved, 5);
	support_note("F_SETPIPE_SZ to 4096 says %d", seen->small_shrink);
}
END_TEST

/* So free pipes are closed when the quota pinches. But the tiny ones count, too,
 * and have gone beyond it: a big one makes room for less than its size. */
START_TEST(a_closed_pipe_gives_its_pages_back_at_once)
{
	if (!quota_can_be_met())
		return;
	look_as_nobody();
	if (seen->big < 2) {
		support_skip("others of this user hold all of the quota");
		return;
	}
	support_note("1 MiB after one has been closed: %d", seen->one_back);
	ck_assert_int_eq(seen->two_back, BIG);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pipe_quota");
	TCase *tc = support_case(s, "kernel");

	tcase_add_test(tc, past_the_quota_a_pipe_does_not_grow);
	tcase_add_test(tc, past_the_quota_a_new_pipe_is_tiny);
	tcase_add_test(tc, a_closed_pipe_gives_its_pages_back_at_once);
	return support_main(s);
}
