/* SPDX-License-Identifier: MIT */
/*
 * bulk.c - as many bytes as possible, in one direction
 *
 * Bytes count when they have arrived: the clock stops when the last stream has
 * its receipt or, in reverse, has been read to the end.
 *
 *	CONNECTING - SENDING - all sent or time over; FIN - RECEIPT - end
 *	           \ RECEIVING - time over: FIN; until the server's FIN - end
 *
 * In reverse, with --seconds, the length is the server's choice, so a tail that
 * is lost cannot be told from a shorter stream; with --bytes it can.
 */
#include "load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "client.h"
#include "stream.h"
#include "wire.h"

enum bulk_state {
	CONNECTING,
	SENDING,
	RECEIPT,
	RECEIVING,
	ENDED,
};

struct bulk_conn {
	int fd;
	enum bulk_state state;
	struct stream stream;
	uint64_t limit; /* bytes to move; UINT64_MAX: until the time is over */
	struct receipt receipt;
	size_t receipt_held; /* bytes that came in its place */
};

struct bulk {
	struct client client; /* first: what client_run() has is a bulk */
	struct bulk_conn *conns;
	uint64_t bytes; /* of the streams that have ended well */
};

static void bulk_end(struct bulk *b, struct bulk_conn *conn, uint64_t bytes)
{
	b->bytes += bytes;
	conn->state = ENDED;
	client_hangup(&b->client, conn->fd);
}

/* Says FIN; the server will then say its last. */
static void bulk_stop_one(struct bulk *b, struct bulk_conn *conn)
{
	if (conn->state == SENDING) {
		conn->state = RECEIPT;
		client_watch(&b->client, conn->fd, EPOLLIN, conn);
	} else if (conn->state != RECEIVING) {
		return;
	}
	shutdown(conn->fd, SHUT_WR);
}

static void bulk_stop(struct client *c)
{
	struct bulk *b = (struct bulk *)c;
	unsigned i;

	for (i = 0; i < c->o->connections; i++)
		bulk_stop_one(b, &b->conns[i]);
}

static void bulk_greet(struct bulk *b, struct bulk_conn *conn)
{
	const struct options *o = b->client.o;
	struct hello hello = {
		.magic = HELLO_MAGIC,
		.kind = o->reverse ? HELLO_SOURCE : HELLO_SINK,
		.stamped = o->check,
		.stream = conn->stream.id,
		.count = conn->limit == UINT64_MAX ? 0 : conn->limit,
	};
	int err = sock_hello(conn->fd, &hello, false);

	if (err) {
		client_fail(&b->client, conn->stream.id, "connecting", err);
		return;
	}
	conn->state = o->reverse ? RECEIVING : SENDING;
	if (o->reverse)
		client_watch(&b->client, conn->fd, EPOLLIN, conn);
	if (b->client.stopped)
		bulk_stop_one(b, conn);
}

static void bulk_send(struct bulk *b, struct bulk_conn *conn)
{
	struct stream *s = &conn->stream;
	ssize_t n = stream_send(s, conn->fd, conn->limit - s->sent);

	if (n < 0 && n != -EAGAIN)
		client_fail(&b->client, s->id, "sending", n);
	else if (s->sent == conn->limit)
		bulk_stop_one(b, conn);
}

/* The server has said FIN, and what it said before should be the receipt. */
static void receipt_read(struct bulk *b, struct bulk_conn *conn)
{
	const struct receipt *r = &conn->receipt;
	struct stream *s = &conn->stream;
	bool valid =
		conn->receipt_held == sizeof(*r) && r->magic == RECEIPT_MAGIC;

	if (valid && !r->wrong && r->bytes == s->sent) {
		bulk_end(b, conn, r->bytes);
		return;
	}
	if (!valid)
		complain("stream %u: instead of a receipt came %zu bytes, and "
			 "FIN",
			 s->id, conn->receipt_held);
	else if (r->wrong)
		complain("stream %u: the server got a wrong byte, the one at "
			 "%" PRIu64,
			 s->id, r->bytes);
	else
		complain("stream %u: the server got %" PRIu64 " bytes of "
			 "%" PRIu64,
			 s->id, r->bytes, s->sent);
	b->client.failed = true;
}

static void bulk_receipt(struct bulk *b, struct bulk_conn *conn)
{
	size_t held = conn->receipt_held;
	char more[sizeof(conn->receipt)]; /* nothing should come here */
	ssize_t n;

	if (held < sizeof(conn->receipt))
		n = recv(conn->fd, (char *)&conn->receipt + held,
			 sizeof(conn->receipt) - held, 0);
	else
		n = recv(conn->fd, more, sizeof(more), 0);

	if (n > 0)
		conn->receipt_held += n;
	else if (!n)
		receipt_read(b, conn);
	else if (errno != EAGAIN)
		client_fail(&b->client, conn->stream.id,
			    "waiting for the receipt", -errno);
}

static void bulk_recv(struct bulk *b, struct bulk_conn *conn)
{
	struct stream *s = &conn->stream;
	ssize_t n = stream_recv(s, conn->fd, STREAM_PIECE);

	if (n > 0 || n == -EAGAIN)
		return;
	if (n < 0) {
		client_fail(&b->client, s->id, "receiving", n);
	} else if (conn->limit == UINT64_MAX ? b->client.stopped
					     : s->got == conn->limit) {
		bulk_end(b, conn, s->got);
	} else {
		complain("stream %u: the server's FIN came after %" PRIu64
			 " bytes, where it should not",
			 s->id, s->got);
		b->client.failed = true;
	}
}

static void bulk_step(struct client *c, void *conn)
{
	static void (*const steps[])(struct bulk *, struct bulk_conn *) = {
		[CONNECTING] = bulk_greet,
		[SENDING] = bulk_send,
		[RECEIPT] = bulk_receipt,
		[RECEIVING] = bulk_recv,
	};
	struct bulk_conn *bc = conn;

	steps[bc->state]((struct bulk *)c, bc);
}

/* The bytes of stream @i: equal shares, and the first ones take the rest. */
static uint64_t bulk_share(const struct options *o, unsigned i)
{
	if (!o->bytes)
		return UINT64_MAX;
	return o->bytes / o->connections + (i < o->bytes % o->connections);
}

static void bulk_dial(struct bulk *b)
{
	const struct options *o = b->client.o;
	unsigned i;

	for (i = 0; i < o->connections && !b->client.failed; i++) {
		struct bulk_conn *conn = &b->conns[i];

		conn->limit = bulk_share(o, i);
		conn->stream.id = i + 1;
		conn->stream.stamped = o->check;
		conn->fd = client_dial(&b->client, EPOLLOUT, conn);
	}
}

int bulk_run(const struct options *o)
{
	struct bulk b = { 0 };
	uint64_t start = now_ns();
	double seconds;
	int err;

	b.conns = calloc(o->connections, sizeof(*b.conns));
	if (!b.conns || client_init(&b.client, o) < 0) {
		complain("no memory or no descriptors");
		free(b.conns);
		return 1;
	}
	b.client.step = bulk_step;
	b.client.stop = bulk_stop;
	b.client.stop_ns = o->time_ns ? start + o->time_ns : 0;

	bulk_dial(&b);
	err = client_run(&b.client);
	seconds = (now_ns() - start) / 1e9;
	printf("{\"bytes\":%" PRIu64 ",\"seconds\":%.3f,\"gbit_s\":%.3f,"
	       "\"streams\":%u,\"checked\":%" PRIu64 ",\"errors\":%d}\n",
	       b.bytes, seconds, b.bytes * 8 / seconds / 1e9, o->connections,
	       o->check ? b.bytes : 0, err ? 1 : 0);

	client_fini(&b.client);
	free(b.conns);
	return err ? 1 : 0;
}
