/* SPDX-License-Identifier: MIT */
/*
 * util.h - the handful of macros every file may assume.
 */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define array_size(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr)-offsetof(type, member)))

/* Names a destructor to run when the variable leaves scope. */
#define cleanup(fn) __attribute__((cleanup(fn)))

#define NS_PER_MS  UINT64_C(1000000)
#define NS_PER_SEC UINT64_C(1000000000)

static inline int close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
	return -1;
}

static inline void close_fdp(int *fd)
{
	*fd = close_fd(*fd);
}

/* Takes the descriptor out of *@fd, so that its cleanup has nothing to do. */
static inline int steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

/* Nanoseconds that never go back; for deadlines, not for the hot path. */
static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

#endif /* BASE_UTIL_H */
