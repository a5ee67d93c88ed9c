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

struct rr_conn {
	int fd;
	bool greeted; /* connected, and the hello is sent */
	bool ending;  /* the server's FIN is what comes next */
	struct stream stream;
	uint64_t goal;	   /* position at which this exchange is complete */
	uint64_t start_ns; /* of this exchange */
};

struct rr {
	struct client client; /* first: what client_run() has is a rr */
	struct rr_conn *conns;
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
		.goal = rr->client.o->size,
		.start_ns = now_ns(),
	};
	conn->fd = client_dial(&rr->client, EPOLLIN | EPOLLOUT | EPOLLET, conn);
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

/* Records the exchange that has just ended. Returns the time. */
static uint64_t rr_record(struct rr *rr, struct rr_conn *conn)
{
	uint64_t now = now_ns();

	if (rr->start_ns && conn->start_ns >= rr->start_ns) {
		histo_add(&rr->histo, now - conn->start_ns);
		rr->last_ns = now;
	}
	return now;
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

/* An answer is complete: the next request, or the end. */
static void rr_answered(struct rr *rr, struct rr_conn *conn)
{
	const struct options *o = rr->client.o;
	uint64_t now;

	if (rr->reconnect) {
		conn->ending = true;
		return;
	}
	now = rr_record(rr, conn);
	if (rr->hold) {
		rr_held(rr);
		return;
	}
	if (conn->goal == o->size && ++rr->ready == o->connections) {
		rr->start_ns = now;
		rr->client.stop_ns = now + o->time_ns;
	}
	if (rr->client.stopped) {
		conn->ending = true;
		shutdown(conn->fd, SHUT_WR);
		return;
	}
	conn->goal += o->size;
	conn->start_ns = now;
}

/* The server has said FIN where it should. */
static void rr_ended(struct rr *rr, struct rr_conn *conn)
{
	const struct options *o = rr->client.o;

	client_hangup(&rr->client, conn->fd);
	if (!rr->reconnect)
		return;
	rr_record(rr, conn);
	if (!rr->client.stopped && (!o->count || rr->begun < o->count))
		rr_dial(rr, conn);
}

/* Returns above 0 after progress, 0 at the server's FIN, or -errno. */
static ssize_t rr_exchange(struct rr_conn *conn)
{
	struct stream *s = &conn->stream;
	ssize_t n;

	for (n = 1; n > 0 && s->sent < conn->goal;)
		n = stream_send(s, conn->fd, conn->goal - s->sent);
	if (n < 0 && n != -EAGAIN)
		return n;
	if (conn->ending) {
		n = stream_recv(s, conn->fd, 1);
		return n > 0 ? -EPROTO : n;
	}
	return stream_recv(s, conn->fd, conn->goal - s->got);
}

/* Edge triggered: goes on until there is nothing to be had. */
static void rr_step(struct client *c, void *ptr)
{
	struct rr *rr = (struct rr *)c;
	struct rr_conn *conn = ptr;
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
		n = rr_exchange(conn);
		if (n > 0 && conn->stream.got == conn->goal)
			rr_answered(rr, conn);
		if (!c->open)
			return; /* they were held, and are gone */
	} while (n > 0);

	if (!n && conn->ending)
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
	       "\"errors\":%d}\n",
	       h->n, seconds, h->n ? h->n / seconds : 0, histo_us(h, .5),
	       histo_us(h, .99), histo_us(h, .999), h->slow, o->connections,
	       o->size, err ? 1 : 0);
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
	if (!rr.conns || client_init(&rr.client, o) < 0) {
		complain("no memory or no descriptors");
		free(rr.conns);
		return 1;
	}
	rr.client.step = rr_step;
	if (reconnect) {
		rr.start_ns = now_ns();
		rr.client.stop_ns = o->time_ns ? rr.start_ns + o->time_ns : 0;
	}

	for (i = 0; i < o->connections && !rr.client.failed; i++)
		if (!o->count || rr.begun < o->count)
			rr_dial(&rr, &rr.conns[i]);
	err = client_run(&rr.client);
	if (!held)
		rr_report(&rr, err);

	client_fini(&rr.client);
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
