/* SPDX-License-Identifier: MIT */
/*
 * stamp.c - writing, checking and explaining stamped bytes
 *
 * Two neighbours that agree are taken for real words: by chance that happens
 * once in 2^64.
 */
#include "stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORD  sizeof(uint64_t)
#define BLOCK 64 /* words compared between two looks at the result */

/* an odd number, and what undoes the multiplication by it, modulo 2^64 */
#define FACTOR	0x9e3779b97f4a7c15u
#define INVERSE 0xf1de83e19937733du

/* From one word to the next this grows by FACTOR: no multiplication there. */
static uint64_t product_at(unsigned stream, uint64_t index)
{
	return (((uint64_t)stream << 48 | index) + 1) * FACTOR;
}

static uint64_t scramble(uint64_t x)
{
	x ^= x >> 16;
	return x ^ x >> 32;
}

static uint64_t unscramble(uint64_t x)
{
	return x ^ x >> 16;
}

static uint64_t word_at(unsigned stream, uint64_t index)
{
	return scramble(product_at(stream, index));
}

/* The word (stream and index) that the 8 bytes at @p claim to be. */
static uint64_t claim(const unsigned char *p)
{
	uint64_t w;

	memcpy(&w, p, WORD);
	return unscramble(w) * INVERSE - 1;
}

/* How many of the @n bytes at @offset come before the next whole word. */
static size_t head_size(uint64_t offset, size_t n)
{
	size_t head = -offset % WORD;

	return head < n ? head : n;
}

/* For the ends of a piece, which may cut a word in two. */
static void fill_part(unsigned char *p, unsigned stream, uint64_t offset, size_t n)
{
	uint64_t w = word_at(stream, offset / WORD);

	memcpy(p, (char *)&w + offset % WORD, n);
}

void stamp_fill(void *buf, unsigned stream, uint64_t offset, size_t n)
{
	size_t head = head_size(offset, n), words = (n - head) / WORD, i;
	unsigned char *p = buf;
	uint64_t x, w;

	fill_part(p, stream, offset, head);
	p += head;
	offset += head;
	x = product_at(stream, offset / WORD);
	for (i = 0; i < words; i++) {
		w = scramble(x);
		memcpy(p + i * WORD, &w, WORD);
		x += FACTOR;
	}
	fill_part(p + words * WORD, stream, offset + words * WORD,
		  (n - head) % WORD);
}

/* Returns the number of right bytes before the first wrong one. */
static size_t part_right(const unsigned char *p, unsigned stream,
			 uint64_t offset, size_t n)
{
	uint64_t w = word_at(stream, offset / WORD);
	const unsigned char *want = (unsigned char *)&w + offset % WORD;
	size_t i = 0;

	while (i < n && p[i] == want[i])
		i++;
	return i;
}

/* What is wrong in @n words, the product of the first of which is @x: 0 is
 * nothing. No branch inside: the compiler makes vector code of it. */
static uint64_t words_wrong(const unsigned char *p, size_t n, uint64_t x)
{
	uint64_t wrong = 0, w;
	size_t i;

	for (i = 0; i < n; i++) {
		memcpy(&w, p + i * WORD, WORD);
		wrong |= w ^ scramble(x);
		x += FACTOR;
	}
	return wrong;
}

/* Returns the number of right words before the first wrong one. */
static size_t words_right(const unsigned char *p, size_t n, uint64_t x)
{
	size_t i = 0;

	while (n - i >= BLOCK && !words_wrong(p + i * WORD, BLOCK, x + i * FACTOR))
		i += BLOCK;
	while (i < n && !words_wrong(p + i * WORD, 1, x + i * FACTOR))
		i++;
	return i;
}

ssize_t stamp_check(const void *buf, unsigned stream, uint64_t offset, size_t n)
{
	size_t head = head_size(offset, n), done;
	const unsigned char *p = buf;

	done = part_right(p, stream, offset, head);
	if (done < head)
		return done;
	done += WORD * words_right(p + done, (n - done) / WORD,
				   product_at(stream, (offset + done) / WORD));
	while (done < n) {
		size_t k = n - done < WORD ? n - done : WORD;
		size_t right = part_right(p + done, stream, offset + done, k);

		done += right;
		if (right < k)
			return done;
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

/* A piece that is wrong: what was expected, and what its bytes claim. */
struct wrong {
	const unsigned char *buf;
	unsigned stream;
	uint64_t offset; /* of the first byte of @buf */
	size_t n;
	size_t bad;    /* index of the first wrong byte */
	size_t at;     /* index of the first word that claims to be one */
	uint64_t word; /* which one */
};

static const char *befell(const struct wrong *w, uint64_t is, uint64_t want)
{
	uint64_t missed = (w->offset + w->bad + WORD - 1) / WORD;

	if (is < want)
		return "repeated";
	return turns_up(w->buf, w->at, w->n, (uint64_t)w->stream << 48 | missed,
			w->word)
		       ? "reordered"
		       : "lost";
}

static void explain_word(char *out, size_t size, const struct wrong *w)
{
	uint64_t is = (w->word & 0xffffffffffffu) * WORD;
	uint64_t want = w->offset + w->at;
	unsigned of = w->word >> 48;

	if (of != w->stream)
		snprintf(out, size,
			 "foreign: byte %" PRIu64
			 " of stream %u is byte %" PRIu64 " of stream %u",
			 want, w->stream, is, of);
	else if (is == want)
		snprintf(out, size,
			 "garbled: bytes %" PRIu64 " to %" PRIu64
			 " of stream %u, right again after them",
			 w->offset + w->bad, want - 1, w->stream);
	else
		snprintf(out, size,
			 "%s: at byte %" PRIu64
			 " of stream %u stands byte %" PRIu64 ", %" PRIu64
			 " bytes %s",
			 befell(w, is, want), want, w->stream, is,
			 is < want ? want - is : is - want,
			 is < want ? "back" : "on");
}

char *stamp_explain(char *out, size_t size, const void *buf, unsigned stream,
		    uint64_t offset, size_t n)
{
	ssize_t bad = stamp_check(buf, stream, offset, n), at;
	struct wrong w = { buf, stream, offset, n, .bad = (size_t)bad };

	if (bad < 0) {
		snprintf(out, size, "right: %zu bytes of stream %u", n, stream);
		return out;
	}
	at = find_words(buf, bad, n, &w.word);
	w.at = (size_t)at;
	if (at < 0)
		snprintf(out, size,
			 "garbled: no stamp from byte %" PRIu64
			 " of stream %u on, %zu bytes",
			 offset + bad, stream, n - bad);
	else
		explain_word(out, size, &w);
	return out;
}
