/* SPDX-License-Identifier: MIT */
/*
 * stream.c - moving payload, stamped or not
 *
 * Stamps are made anew for each call and not kept with the connection. What a
 * short send leaves is then made twice, which is cheap: it is in the cache and
 * happens once a wake-up.
 */
#include "stream.h"

#include <errno.h>
#include <sys/socket.h>

#include "load.h"
#include "stamp.h"

/* One more word than a piece, since a piece may begin inside a word. */
static uint64_t words[STREAM_PIECE / STAMP_SIZE + 1];

static size_t piece_size(uint64_t most)
{
	return most < STREAM_PIECE ? most : STREAM_PIECE;
}

ssize_t stream_send(struct stream *s, int fd, uint64_t most)
{
	size_t off = s->sent % STAMP_SIZE, len = piece_size(most);
	ssize_t n;

	if (s->stamped)
		stamp_fill(words, (off + len + STAMP_SIZE - 1) / STAMP_SIZE,
			   s->id, s->sent - off);
	n = send(fd, (char *)words + off, len, MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	s->sent += n;
	return n;
}

static ssize_t stream_check(struct stream *s, const char *data, size_t len)
{
	size_t right = stamp_check(data, len, s->id, s->got);
	char text[160];

	s->got += right;
	if (right == len)
		return len;

	s->wrong = true;
	stamp_explain(text, sizeof(text), data + right, len - right, s->id,
		      s->got);
	complain("stream %u: %s", s->id, text);
	return -EBADMSG;
}

ssize_t stream_recv(struct stream *s, int fd, uint64_t most)
{
	char *data = (char *)words + s->got % STAMP_SIZE;
	ssize_t n = recv(fd, data, piece_size(most), 0);

	if (n < 0)
		return -errno;
	s->piece = data;
	if (s->wrong)
		return n;
	if (s->stamped && n > 0)
		return stream_check(s, data, n);
	s->got += n;
	return n;
}
