/* SPDX-License-Identifier: MIT */
/*
 * stamp.c - writing, checking and explaining stamped bytes.
 */
#include "stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 64 /* words compared between two looks at the result */

static uint64_t stamp_word(uint16_t stream, uint64_t pos)
{
	return (uint64_t)stream << 48 | pos / STAMP_SIZE;
}

void stamp_fill(uint64_t *words, size_t n, uint16_t stream, uint64_t pos)
{
	uint64_t first = stamp_word(stream, pos);
	size_t i;

	for (i = 0; i < n; i++)
		words[i] = first + i;
}

/* Returns the number of right words before the first wrong one. */
static size_t words_right(const uint64_t *words, size_t n, uint64_t first)
{
	size_t i, k;

	for (i = 0; n - i >= BLOCK; i += BLOCK) {
		uint64_t wrong = 0;

		/* No branch inside: the compiler makes vector code of it. */
		for (k = i; k < i + BLOCK; k++)
			wrong |= words[k] ^ (first + k);
		if (wrong)
			break;
	}
	while (i < n && words[i] == first + i)
		i++;
	return i;
}

/* For the ends of a piece, which may cut a word in two. */
static size_t bytes_right(const char *data, size_t len, uint16_t stream,
			  uint64_t pos)
{
	size_t i;

	for (i = 0; i < len; i++) {
		uint64_t word = stamp_word(stream, pos + i);

		if (data[i] != ((char *)&word)[(pos + i) % STAMP_SIZE])
			break;
	}
	return i;
}

size_t stamp_check(const char *data, size_t len, uint16_t stream, uint64_t pos)
{
	size_t head = -pos % STAMP_SIZE, n, done;

	if (head > len)
		head = len;
	done = bytes_right(data, head, stream, pos);
	if (done < head)
		return done;

	n = (len - done) / STAMP_SIZE;
	done += STAMP_SIZE * words_right((const uint64_t *)(data + done), n,
					 stamp_word(stream, pos + done));
	return done + bytes_right(data + done, len - done, stream, pos + done);
}

/*
 * Looks for two words in a row, at any distance from a word's boundary: the
 * second is the first plus one nowhere but at a boundary. Sets what stream
 * and position the first byte of @data really has.
 */
static int find_stamp(const char *data, size_t len, uint16_t *stream, int64_t *pos)
{
	uint64_t pair[2];
	size_t k;

	for (k = 0; k < 2 * STAMP_SIZE && k + sizeof(pair) <= len; k++) {
		memcpy(pair, data + k, sizeof(pair));
		if (pair[1] != pair[0] + 1 || !(pair[0] >> 48))
			continue;
		*stream = pair[0] >> 48;
		*pos = (int64_t)(pair[0] << 16 >> 16) * STAMP_SIZE - (int64_t)k;
		return 0;
	}
	return -1;
}

void stamp_explain(char *text, size_t size, const char *data, size_t len,
		   uint16_t stream, uint64_t pos)
{
	uint64_t word = stamp_word(stream, pos);
	unsigned char is = data[0];
	unsigned char should = ((unsigned char *)&word)[pos % STAMP_SIZE];
	uint16_t of = stream;
	int64_t really = pos;

	if (find_stamp(data, len, &of, &really) < 0)
		snprintf(text, size,
			 "byte %" PRIu64 " is 0x%02x and should be 0x%02x, and "
			 "what follows is of no stream or too short to tell",
			 pos, is, should);
	else if (of != stream)
		snprintf(text, size,
			 "at byte %" PRIu64 " come bytes of stream %u from "
			 "position %" PRId64,
			 pos, of, really);
	else if (really > (int64_t)pos)
		snprintf(text, size,
			 "at byte %" PRIu64 " %" PRIu64 " bytes are missing, "
			 "or late",
			 pos, really - pos);
	else if (really < (int64_t)pos)
		snprintf(text, size,
			 "at byte %" PRIu64 " come the bytes from position "
			 "%" PRId64 " again, or late",
			 pos, really);
	else
		snprintf(text, size,
			 "byte %" PRIu64 " is 0x%02x and should be 0x%02x", pos,
			 is, should);
}
