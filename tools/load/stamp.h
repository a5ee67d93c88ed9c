/* SPDX-License-Identifier: MIT */
/*
 * stamp.h - bytes that know where they belong
 *
 * A stream is a row of 8-byte words in the byte order of this machine. Each
 * says which stream it is of (upper 16 bits) and which word of it (lower 48).
 * A byte that is lost, repeated, out of order, or of another stream therefore
 * makes the words that follow wrong in a way that tells which it was.
 *
 * Stream 0 is not used: memory that nobody wrote to must not look right.
 */
#ifndef LOAD_STAMP_H
#define LOAD_STAMP_H

#include <stddef.h>
#include <stdint.h>

#define STAMP_SIZE 8

/**
 * stamp_fill() - write a piece of a stream
 * @words:	where to
 * @n:		how many words
 * @stream:	which stream
 * @pos:	position of the first byte, a multiple of STAMP_SIZE
 */
void stamp_fill(uint64_t *words, size_t n, uint16_t stream, uint64_t pos);

/**
 * stamp_check() - how many bytes of a piece are right
 * @data:	the piece; its address must be @pos modulo STAMP_SIZE, so that
 *		the words of the stream are words of memory
 * @len:	bytes of it
 * @stream:	which stream it should be of
 * @pos:	position of the first byte
 *
 * Return: bytes before the first wrong one; @len if there is none.
 */
size_t stamp_check(const char *data, size_t len, uint16_t stream, uint64_t pos);

/**
 * stamp_explain() - say what a wrong byte is
 * @text:	becomes one line
 * @size:	room in @text
 * @data:	from the wrong byte on; any address
 * @len:	bytes of it, the more the surer, at least 1
 * @stream:	which stream they should be of
 * @pos:	position of the wrong byte
 */
void stamp_explain(char *text, size_t size, const char *data, size_t len,
		   uint16_t stream, uint64_t pos);

#endif
