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

static char piece[STREAM_PIECE];

static size_t piece_size(uint64_t most)
{
	return most < STREAM_PIECE ? most : STREAM_PIECE;
}

ssize_t stream_send(struct stream *s, int fd, uint64_t most)
{
	size_t len = piece_size(most);
	ssize_t n;

	if (s->stamped)
		stamp_fill(piece, s->id, s->sent, len);
	n = send(fd, piece, len, MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	s->sent += n;
	return n;
}

static ssize_t stream_check(struct stream *s, size_t len)
{
	ssize_t wrong = stamp_check(piece, s->id, s->got, len);
	char text[STAMP_WHY];

	if (wrong < 0) {
		s->got += len;
		return len;
	}
	s->wrong = true;
	complain("%s",
		 stamp_explain(text, sizeof(text), piece, s->id, s->got, len));
	s->got += wrong;
	return -EBADMSG;
}

ssize_t stream_recv(struct stream *s, int fd, uint64_t most)
{
	ssize_t n = recv(fd, piece, piece_size(most), 0);

	if (n < 0)
		return -errno;
	s->piece = piece;
	if (s->wrong)
		return n;
	if (s->stamped && n > 0)
		return stream_check(s, n);
	s->got += n;
	return n;
}
