/* SPDX-License-Identifier: MIT */
/*
 * stamp.h - bytes that tell their stream and their position
 *
 * A stream is a sequence of 8-byte words in the byte order of the machine.
 * Each holds its stream (upper 16 bits) and its index (lower 48), plus one,
 * times an odd constant, each 16 bits of it combined by exclusive or with all
 * that are above them. Each byte of a word depends on all of that, so a byte
 * of another word differs in 255 of 256 cases, and memory of zeros is no
 * stream. All of it can be undone: a wrong word tells where it belongs.
 *
 * Bytes can be made and checked at any position and in any length, without
 * state. test/daemon/kit/stamp.py has the same format.
 */
#ifndef LOAD_STAMP_H
#define LOAD_STAMP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* room enough for any text of stamp_explain() */
#define STAMP_WHY 200

/**
 * stamp_fill() - write a piece of a stream
 * @buf:	where to, at any address
 * @stream:	which stream, below 65536
 * @offset:	position of the first byte
 * @n:		how many bytes
 */
void stamp_fill(void *buf, unsigned stream, uint64_t offset, size_t n);

/**
 * stamp_check() - find the first wrong byte of a piece
 * @buf:	the piece, at any address
 * @stream:	which stream it should be of
 * @offset:	position of the first byte
 * @n:		how many bytes
 *
 * Return: the index in @buf of the first wrong byte, or -1.
 */
ssize_t stamp_check(const void *buf, unsigned stream, uint64_t offset, size_t n);

/**
 * stamp_explain() - say what is wrong with a piece
 * @out:	becomes one line
 * @size:	room in @out
 * @buf:	the piece, as for stamp_check(); the longer, the surer
 * @stream:	which stream it should be of
 * @offset:	position of the first byte
 * @n:		how many bytes
 *
 * The line begins with one of: right, lost, repeated, reordered, foreign,
 * garbled. "Lost" is said only of what @buf shows: bytes that come back after
 * its end would have been "reordered" in a longer one.
 *
 * Return: @out.
 */
char *stamp_explain(char *out, size_t size, const void *buf, unsigned stream,
		    uint64_t offset, size_t n);

#endif
