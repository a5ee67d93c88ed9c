/* SPDX-License-Identifier: MIT */
/*
 * promise.c - promises, and what is done when one does not hold
 */
#include "fuzz/fuzz.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fuzz_broken(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
	abort();
}

void promise_message(const char *why)
{
	size_t len = strlen(why);

	promise(len > 5 && len < 200);
	for (size_t i = 0; i < len; i++)
		promise(isprint((unsigned char)why[i]));
}

void __wrap__exit(int status) __attribute__((noreturn));

/* How the model ends when an invariant does not hold. */
void __wrap__exit(int status)
{
	fuzz_broken("nobody calls _exit()", __FILE__, __LINE__);
}
