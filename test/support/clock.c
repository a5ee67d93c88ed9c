/* SPDX-License-Identifier: MIT */
/*
 * Time and descriptors of this process, as tests count them.
 */
#include "support/clock.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <time.h>

static int64_t clock_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

int64_t cpu_ms(void)
{
	return clock_ms(CLOCK_PROCESS_CPUTIME_ID);
}

void sleep_us(int us)
{
	struct timespec left = { us / 1000000, us % 1000000 * 1000L };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

void sleep_ms(int ms)
{
	sleep_us(ms * 1000);
}

int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int n = 0;

	if (!d)
		ck_abort_msg("/proc/self/fd: %m");
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n - 1; /* the directory itself */
}
