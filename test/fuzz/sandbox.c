/* SPDX-License-Identifier: MIT */
/*
 * sandbox.c - a program without a world outside
 *
 * Linked with -Wl,--wrap for each of these. What is logged is looked at and
 * counted; files are what the harness says; no name is looked up.
 */
#include "fuzz/fuzz.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"

static struct {
	void *file; /* only read */
	size_t size;
	unsigned lines, usages;
} box;

void sandbox_begin(const void *file, size_t size)
{
	box.file = (void *)(uintptr_t)file;
	box.size = size;
	box.lines = box.usages = 0;
}

unsigned sandbox_lines(void)
{
	return box.lines;
}

unsigned sandbox_usages(void)
{
	return box.usages;
}

bool __wrap_output_put(struct output *o, const char *text, size_t len);
void __wrap_usage_print(void);
void __wrap_usage_print_version(void);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);
int __real_getaddrinfo(const char *host, const char *service,
		       const struct addrinfo *hints, struct addrinfo **ret);
int __wrap_getaddrinfo(const char *host, const char *service,
		       const struct addrinfo *hints, struct addrinfo **ret);

/* A log line: whole, and one, whatever was put into it. */
bool __wrap_output_put(struct output *o, const char *text, size_t len)
{
	promise(o->fd == STDERR_FILENO);
	promise(len > 9 && !memcmp(text, "sluice: ", 8));
	promise(text[len - 1] == '\n');
	for (size_t i = 0; i + 1 < len; i++)
		promise(!iscntrl((unsigned char)text[i]));
	box.lines++;
	return true;
}

void __wrap_usage_print(void)
{
	box.usages++;
}

void __wrap_usage_print_version(void)
{
	box.usages++;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (strcmp(mode, "re")) /* libFuzzer's own */
		return __real_fopen(path, mode);
	if (!box.file || !*path) {
		errno = ENOENT;
		return NULL;
	}
	/* A stream of no bytes is not to be had of fmemopen(3). */
	return box.size ? fmemopen(box.file, box.size, "r")
			: __real_fopen("/dev/null", "r");
}

/* What it is called where off_t has 64 bits by order, as meson gives it. */
FILE *__wrap_fopen64(const char *path, const char *mode)
{
	return __wrap_fopen(path, mode);
}

int __wrap_getaddrinfo(const char *host, const char *service,
		       const struct addrinfo *hints, struct addrinfo **ret)
{
	struct addrinfo numeric = hints ? *hints : (struct addrinfo){ 0 };

	numeric.ai_flags |= AI_NUMERICHOST;
	return __real_getaddrinfo(host, service, &numeric, ret);
}
