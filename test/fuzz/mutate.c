/* SPDX-License-Identifier: MIT */
/*
 * mutate.c - inputs made from other inputs.
 */
#include "fuzz/mutate.h"

#include <stdbool.h>
#include <string.h>

#define MOST_CHANGES 5

unsigned dice_throw(uint64_t *state, unsigned n)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (unsigned)((*state * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % n;
}

static void drop(struct input *in, size_t at, size_t n)
{
	memmove(in->data + at, in->data + at + n, in->size - at - n);
	in->size -= n;
}

static void insert(struct input *in, size_t at, const void *piece, size_t n)
{
	if (in->size + n > INPUT_MOST)
		return;
	memmove(in->data + at + n, in->data + at, in->size - at);
	memcpy(in->data + at, piece, n);
	in->size += n;
}

static void insert_word(struct input *in, size_t at, const char *const *words,
			uint64_t *state)
{
	unsigned n = 0;
	const char *word;

	while (words[n])
		n++;
	word = words[dice_throw(state, n)];
	insert(in, at, word, strlen(word));
}

static void insert_piece(struct input *in, size_t at, const struct input *other,
			 uint64_t *state)
{
	size_t from, n;

	if (!other->size || in == other)
		return;
	from = dice_throw(state, (unsigned)other->size);
	n = 1 + dice_throw(state, (unsigned)(other->size - from));
	insert(in, at, other->data + from, n);
}

static void repeat_byte(struct input *in, size_t at, uint64_t *state)
{
	uint8_t row[300];
	size_t n = 1 + dice_throw(state, sizeof(row));

	memset(row, in->data[at], n);
	insert(in, at, row, n);
}

static void change(struct input *in, const struct input *other,
		   const char *const *words, uint64_t *state)
{
	size_t at = dice_throw(state, (unsigned)in->size + 1);
	uint8_t byte = (uint8_t)dice_throw(state, 256);
	bool inside = at < in->size;

	switch (dice_throw(state, 8)) {
	case 0:
		if (inside)
			in->data[at] = byte;
		break;
	case 1:
		if (inside)
			in->data[at] ^= (uint8_t)(1u << byte % 8);
		break;
	case 2:
		if (inside)
			in->data[at] += byte & 1 ? 1 : -1;
		break;
	case 3:
		insert(in, at, &byte, 1);
		break;
	case 4:
		if (inside)
			drop(in, at,
			     1 + dice_throw(state, (unsigned)(in->size - at)));
		break;
	case 5:
		insert_piece(in, at, other, state);
		break;
	case 6:
		if (inside && byte < 32)
			repeat_byte(in, at, state);
		break;
	default:
		insert_word(in, at, words, state);
	}
}

void mutate(struct input *in, const struct input *other,
	    const char *const *words, uint64_t *state)
{
	for (unsigned n = 1 + dice_throw(state, MOST_CHANGES); n; n--)
		change(in, other, words, state);
}
