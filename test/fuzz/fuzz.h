/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h - what a harness and who runs it know of each other
 *
 * A harness is a file with the two below: libFuzzer's entry, which either
 * returns or ends the program by a signal, and words that its inputs are likely
 * to be made of. It runs in the sandbox, where nothing outside is touched.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern const char *const fuzz_words[]; /* ends with NULL */

/* A promise that must hold, in every kind of build. */
#define promise(true_)                                           \
	do {                                                     \
		if (!(true_))                                    \
			fuzz_broken(#true_, __FILE__, __LINE__); \
	} while (0)

void fuzz_broken(const char *what, const char *file, int line)
	__attribute__((noreturn));

/* Whether it says something to a person: a line, not empty, not endless. */
void promise_message(const char *why);

/* sandbox.c: begins anew; @file is what every path leads to, or NULL: to
 * nothing. */
void sandbox_begin(const void *file, size_t size);
/* Lines that were logged, and texts of usage.c that were printed, since. */
unsigned sandbox_lines(void);
unsigned sandbox_usages(void);

#endif
