/* SPDX-License-Identifier: MIT */
/*
 * Position-stamped bytes.
 *
 * Every 8-byte word of a stream says which stream it belongs to and where in
 * it it stands, scrambled so that no two bytes look alike by accident. Bytes
 * can be made and checked at any offset and in any length, without state, and
 * a receiver that finds a wrong byte can tell what befell it: was a piece
 * lost, repeated, moved, garbled, or does it belong to another connection?
 */
#ifndef SUPPORT_STAMP_H
#define SUPPORT_STAMP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* room enough for whatever stamp_explain() says */
#define STAMP_WHY 200

/* Writes the @n bytes at @offset of @stream (below 65536) to @buf. */
void stamp_fill(void *buf, unsigned stream, uint64_t offset, size_t n);

/* Returns -1 if @buf is the @n bytes at @offset of @stream, or the index in
 * @buf of the first wrong byte. */
ssize_t stamp_check(const void *buf, unsigned stream, uint64_t offset, size_t n);

/*
 * Says in @out, @size bytes of room, what is wrong with @buf. The text begins
 * with one of: right, lost, repeated, reordered, foreign, garbled. "Lost" is
 * said only of what @buf shows: bytes that come back after its end would have
 * been "reordered" in a longer one. Returns @out.
 */
char *stamp_explain(char *out, size_t size, const void *buf, unsigned stream,
		    uint64_t offset, size_t n);

#endif
