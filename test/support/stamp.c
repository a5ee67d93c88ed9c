/* SPDX-License-Identifier: MIT */
/*
 * Position-stamped bytes: word w of stream s is scramble(s << 48 | w), stored
 * in the machine's own order. The scrambling can be undone, so any 8 bytes
 * tell which word they claim to be. Two neighbours that agree are taken for
 * real ones: by chance that happens once in 2^64.
 */
#include "support/stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORD sizeof(uint64_t)

/* two odd numbers and what undoes the multiplication by them, modulo 2^64 */
#define MUL_A 0x9e3779b97f4a7c15u
#define MUL_B 0xbf58476d1ce4e5b9u
#define INV_A 0xf1de83e19937733du
#define INV_B 0x96de1b173f119089u

static uint64_t scramble(uint64_t x)
{
	x *= MUL_A;
	x ^= x >> 32;
	return x * MUL_B;
}

static uint64_t unscramble(uint64_t x)
{
	x *= INV_B;
	x ^= x >> 32;
	return x * INV_A;
}

static uint64_t word_at(unsigned stream, uint64_t index)
{
	return scramble((uint64_t)stream << 48 | index);
}

/* The word (stream and index) that the 8 bytes at @p claim to be. */
static uint64_t claim(const unsigned char *p)
{
	uint64_t w;

	memcpy(&w, p, WORD);
	return unscramble(w);
}

/* How many of the @n bytes at @offset lie in the first word they touch. */
static size_t first_piece(uint64_t offset, size_t n)
{
	size_t room = WORD - offset % WORD;

	return room < n ? room : n;
}

void stamp_fill(void *buf, unsigned stream, uint64_t offset, size_t n)
{
	unsigned char *p = buf;

	while (n) {
		uint64_t w = word_at(stream, offset / WORD);
		size_t k = first_piece(offset, n);

		memcpy(p, (char *)&w + offset % WORD, k);
		p += k;
		offset += k;
		n -= k;
	}
}

ssize_t stamp_check(const void *buf, unsigned stream, uint64_t offset, size_t n)
{
	const unsigned char *p = buf;
	size_t i = 0;

	while (i < n) {
		uint64_t w = word_at(stream, (offset + i) / WORD);
		const unsigned char *want =
			(unsigned char *)&w + (offset + i) % WORD;
		size_t k = first_piece(offset + i, n - i);

		if (memcmp(p + i, want, k)) {
			while (p[i] == *want++)
				i++;
			return i;
		}
		i += k;
	}
	return -1;
}

/*
 * Finds the first pair of neighbouring words at or after index @from. Returns
 * its index in @buf, or -1; *@word is then what the first of the two claims.
 */
static ssize_t find_words(const unsigned char *buf, size_t from, size_t n,
			  uint64_t *word)
{
	for (size_t i = from; i + 2 * WORD <= n; i++) {
		*word = claim(buf + i);
		if (claim(buf + i + WORD) == *word + 1)
			return i;
	}
	return -1;
}

/* Does a word of [@lo, @hi), stream included, stand in @buf after @from? */
static int turns_up(const unsigned char *buf, size_t from, size_t n,
		    uint64_t lo, uint64_t hi)
{
	for (size_t i = from; i + WORD <= n; i++) {
		uint64_t w = claim(buf + i);

		if (w >= lo && w < hi)
			return 1;
	}
	return 0;
}

char *stamp_explain(char *out, size_t size, const void *buf, unsigned stream,
		    uint64_t offset, size_t n)
{
	ssize_t bad = stamp_check(buf, stream, offset, n), at;
	uint64_t word = 0, is, want;
	const char *what;

	if (bad < 0) {
		snprintf(out, size, "right: %zu bytes of stream %u", n, stream);
		return out;
	}
	at = find_words(buf, bad, n, &word);
	if (at < 0) {
		snprintf(out, size,
			 "garbled: no stamp from byte %" PRIu64
			 " of stream %u on, %zu bytes",
			 offset + bad, stream, n - bad);
		return out;
	}
	is = (word & 0xffffffffffffu) * WORD;
	want = offset + at;
	if (word >> 48 != stream) {
		snprintf(out, size,
			 "foreign: byte %" PRIu64
			 " of stream %u is byte %" PRIu64 " of stream %u",
			 want, stream, is, (unsigned)(word >> 48));
		return out;
	}
	if (is == want) {
		snprintf(out, size,
			 "garbled: bytes %" PRIu64 " to %" PRIu64
			 " of stream %u, right again after them",
			 offset + bad, want - 1, stream);
		return out;
	}
	if (is < want)
		what = "repeated";
	else if (turns_up(buf, at, n,
			  (uint64_t)stream << 48 | (offset + bad + WORD - 1) / WORD,
			  word))
		what = "reordered";
	else
		what = "lost";
	snprintf(out, size,
		 "%s: at byte %" PRIu64 " of stream %u stands byte %" PRIu64
		 ", %" PRIu64 " bytes %s",
		 what, want, stream, is, is < want ? want - is : is - want,
		 is < want ? "back" : "on");
	return out;
}
