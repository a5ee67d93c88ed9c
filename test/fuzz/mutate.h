/* SPDX-License-Identifier: MIT */
/*
 * mutate.h - inputs made from other inputs.
 */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Longer inputs than this are neither read nor made. */
#define INPUT_MOST 2048

struct input {
	size_t size;
	uint8_t data[INPUT_MOST];
};

/* A number below @n, of the row that @state has begun; xorshift. */
unsigned dice_throw(uint64_t *state, unsigned n);

/* Changes @in a few times; @other is an input to take a piece of, @words are
 * those of the harness. */
void mutate(struct input *in, const struct input *other,
	    const char *const *words, uint64_t *state);

#endif
