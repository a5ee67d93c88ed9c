/* SPDX-License-Identifier: MIT */
/*
 * rr.c - request and response, each connection in a closed loop
 *
 * Every byte is stamped and checked: at this size it costs nothing, and the
 * server sends back what it got, so both directions are checked here.
 *
 * rr keeps its connections. Its clock starts when each of them has had one
 * answer, so that connecting is not measured. crr makes a connection for each
 * request, and measures from connecting to the server's FIN. There the server
 * closes first, which leaves the TIME_WAIT to a port number that is taken
 * anyway: otherwise the client would run out of ports after seconds.
 *
 * With --pipeline a connection of rr has so many requests under way. What has
 * been answered is asked for again at once, and in one piece if several answers
 * came in one. A request's time is from before the call that took its first byte
 * to after the one that brought the last byte of its answer. Answers need no
 * number: their bytes know where they belong.
 *
 * hold has one answer on each connection, and leaves them as they are then; or
 * it reads nothing of the answers at all, with a small window, so that they are
 * with the forwarder. It ends them by a reset, so that no thousands of ports are
 * in TIME_WAIT when the next one measures.
 */
#include "load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"
#include "histo.h"
#include "stream.h"
#include "wire.h"

#define EVENTS (EPOLLIN | EPOLLOUT | EPOLLET)
#define TURN   16 /* reads on one connection, while others may wait */

struct rr_conn {
	int fd;
	bool greeted; /* connected, and the hello is sent */
	bool ending;  /* the server's FIN is what comes next */
	struct stream stream;
	uint64_t due;	   /* position up to which requests are to be sent */
	uint64_t done;	   /* position up to which answers are complete */
	uint64_t start_ns; /* of connecting */
	uint64_t *sent_ns; /* when requests were, of those that are under way */
};

struct rr {
	struct client client; /* first: what client_run() has is a rr */
	struct rr_conn *conns;
	uint64_t *sent_ns; /* of all connections */
	bool reconnect, hold, unread;
	unsigned ready;	   /* connections that have had an answer */
	uint64_t begun;	   /* connections, all in all */
	uint64_t start_ns; /* of the measuring; 0: not yet */
	uint64_t last_ns;  /* end of the last exchange that counts */
	struct histo histo;
};

static void rr_dial(struct rr *rr, struct rr_conn *conn)
{
	static const int small = 4096;

	*conn = (struct rr_conn){
		.stream.id = 1 + rr->begun++ % UINT16_MAX,
		.stream.stamped = true,
		.due = (uint64_t)rr->client.o->size * rr->client.o->pipeline,
		.start_ns = now_ns(),
		.sent_ns = conn->sent_ns,
	};
	conn->fd = client_dial(&rr->client, EVENTS, conn);
	if (rr->unread && conn->fd >= 0)
		setsockopt(conn->fd, SOL_SOCKET, SO_RCVBUF, &small,
			   sizeof(small));
}

static int rr_greet(struct rr *rr, struct rr_conn *conn)
{
	struct hello hello = {
		.magic = HELLO_MAGIC,
		.kind = rr->unread ? HELLO_SOURCE : HELLO_ECHO,
		.stream = conn->stream.id,
		.count = rr->reconnect || rr->unread ? rr->client.o->size : 0,
	};

	conn->greeted = true;
	return sock_hello(conn->fd, &hello, true);
}

/* Records an exchange that has just ended. */
static void rr_record(struct rr *rr, uint64_t since_ns, uint64_t now)
{
	if (rr->start_ns && since_ns >= rr->start_ns) {
		histo_add(&rr->histo, now - since_ns);
		rr->last_ns = now;
	}
}

/* All connections are as was asked for. */
static void hold(struct rr *rr)
{
	struct linger now = { .l_onoff = 1 };
	char any[64];

	printf("{\"held\":%u}\n", rr->ready);
	fflush(stdout);
	while (read(STDIN_FILENO, any, sizeof(any)) > 0)
		;
	for (unsigned i = 0; i < rr->ready; i++) {
		setsockopt(rr->conns[i].fd, SOL_SOCKET, SO_LINGER, &now,
			   sizeof(now));
		client_hangup(&rr->client, rr->conns[i].fd);
	}
}

/* Of hold: one more connection is as it shall stay. */
static void rr_held(struct rr *rr)
{
	if (++rr->ready == rr->client.o->connections)
		hold(rr);
}

/* The time is over: what has begun is answered, and then this is the end. */
static void rr_finish(struct rr_conn *conn, size_t size)
{
	conn->due = (conn->stream.sent + size - 1) / size * size;
	if (conn->done == conn->due) {
		conn->ending = true;
		shutdown(conn->fd, SHUT_WR);
	}
}

/* An answer is complete: one more request, or the end. */
static void rr_answered(struct rr *rr, struct rr_conn *conn, uint64_t now)
{
	const struct options *o = rr->client.o;
	uint64_t nth = conn->done / o->size;

	conn->done += o->size;
	if (rr->reconnect) {
		conn->ending = true;
		return;
	}
	rr_record(rr, conn->sent_ns[nth % o->pipeline], now);
	if (rr->hold) {
		rr_held(rr);
		return;
	}
	if (conn->done == o->size && ++rr->ready == o->connections) {
		rr->start_ns = now;
		rr->client.stop_ns = now + o->time_ns;
	}
	if (rr->client.stopped)
		rr_finish(conn, o->size);
	else
		conn->due += o->size;
}

/* Bytes have come: each answer that is complete with them. */
static void rr_got(struct rr *rr, struct rr_conn *conn)
{
	uint64_t now = now_ns();

	while (conn->stream.got - conn->done >= rr->client.o->size)
		rr_answered(rr, conn, now);
}

/* The server has said FIN where it should. */
static void rr_ended(struct rr *rr, struct rr_conn *conn)
{
	const struct options *o = rr->client.o;

	client_hangup(&rr->client, conn->fd);
	if (!rr->reconnect)
		return;
	rr_record(rr, conn->start_ns, now_ns());
	if (!rr->client.stopped && (!o->count || rr->begun < o->count))
		rr_dial(rr, conn);
}

/* Sends what is due. Returns above 0 if that is all, or -errno. */
static ssize_t rr_ask(const struct options *o, struct rr_conn *conn)
{
	struct stream *s = &conn->stream;
	uint64_t now, nth;
	ssize_t n;

	for (n = 1; n > 0 && s->sent < conn->due;) {
		nth = (s->sent + o->size - 1) / o->size;
		now = now_ns();
		n = stream_send(s, conn->fd, conn->due - s->sent);
		for (; nth * o->size < s->sent; nth++)
			conn->sent_ns[nth % o->pipeline] = now;
	}
	return n;
}

/* Returns above 0 after progress, 0 at the server's FIN, or -errno. */
static ssize_t rr_exchange(const struct options *o, struct rr_conn *conn)
{
	struct stream *s = &conn->stream;
	ssize_t n = rr_ask(o, conn);

	if (n < 0 && n != -EAGAIN)
		return n;
	if (conn->ending) {
		n = stream_recv(s, conn->fd, 1);
		return n > 0 ? -EPROTO : n;
	}
	n = stream_recv(s, conn->fd, conn->due - s->got);
	/* No answer comes before its request. */
	return n > 0 && s->got > s->sent ? -EPROTO : n;
}

/*
 * Edge triggered: goes on until there is nothing to be had. Where answers come
 * faster than they are read that is never, so after its turn a connection is
 * told of again, behind the others and the clock.
 */
static void rr_step(struct client *c, void *ptr)
{
	struct rr *rr = (struct rr *)c;
	struct rr_conn *conn = ptr;
	unsigned left = TURN;
	ssize_t n;

	if (!conn->greeted) {
		n = rr_greet(rr, conn);
		if (n < 0) {
			client_fail(c, conn->stream.id, "connecting", n);
			return;
		}
		if (rr->unread)
			rr_held(rr);
	}
	if (rr->unread)
		return;
	do {
		n = rr_exchange(c->o, conn);
		if (n > 0)
			rr_got(rr, conn);
		if (!c->open)
			return; /* they were held, and are gone */
	} while (n > 0 && --left);

	if (n > 0)
		client_watch(c, conn->fd, EVENTS, conn);
	else if (!n && conn->ending)
		rr_ended(rr, conn);
	else if (n != -EAGAIN)
		client_fail(c, conn->stream.id,
			    conn->ending ? "waiting for the end"
					 : "waiting for an answer",
			    n);
}

static void rr_report(const struct rr *rr, int err)
{
	const struct options *o = rr->client.o;
	const struct histo *h = &rr->histo;
	double seconds = 0;

	if (h->n)
		seconds = (rr->last_ns - rr->start_ns) / 1e9;
	printf("{\"transactions\":%" PRIu64 ",\"seconds\":%.3f,\"tps\":%.1f,"
	       "\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,"
	       "\"over_35ms\":%" PRIu64 ",\"connections\":%u,\"size\":%zu,"
	       "\"pipeline\":%u,\"errors\":%d}\n",
	       h->n, seconds, h->n ? h->n / seconds : 0, histo_us(h, .5),
	       histo_us(h, .99), histo_us(h, .999), h->slow, o->connections,
	       o->size, o->pipeline, err ? 1 : 0);
}

static int run(const struct options *o, bool reconnect, bool held)
{
	static struct rr rr; /* 60 KiB */
	unsigned i;
	int err;

	rr.reconnect = reconnect;
	rr.hold = held;
	rr.unread = o->unread;
	rr.conns = calloc(o->connections, sizeof(*rr.conns));
	rr.sent_ns = calloc((size_t)o->connections * o->pipeline,
			    sizeof(*rr.sent_ns));
	if (!rr.conns || !rr.sent_ns || client_init(&rr.client, o) < 0) {
		complain("no memory or no descriptors");
		free(rr.sent_ns);
		free(rr.conns);
		return 1;
	}
	rr.client.step = rr_step;
	if (reconnect) {
		rr.start_ns = now_ns();
		rr.client.stop_ns = o->time_ns ? rr.start_ns + o->time_ns : 0;
	}

	for (i = 0; i < o->connections && !rr.client.failed; i++) {
		rr.conns[i].sent_ns = rr.sent_ns + (size_t)i * o->pipeline;
		if (!o->count || rr.begun < o->count)
			rr_dial(&rr, &rr.conns[i]);
	}
	err = client_run(&rr.client);
	if (!held)
		rr_report(&rr, err);

	client_fini(&rr.client);
	free(rr.sent_ns);
	free(rr.conns);
	return err ? 1 : 0;
}

int rr_run(const struct options *o, bool reconnect)
{
	return run(o, reconnect, false);
}

int rr_hold(const struct options *o)
{
	return run(o, false, true);
}
