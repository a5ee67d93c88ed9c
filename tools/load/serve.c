/* SPDX-License-Identifier: MIT */
/*
 * serve.c - the other end: sink, source or echo, as each client asks
 *
 * One thread, level triggered. A connection asks epoll for readable while it
 * wants input and for writable while it has something to say; when both
 * directions have had their FIN it is closed, so that no FIN is ever replaced
 * by a reset. What could not be sent is kept with the connection, and nothing
 * is read as long as there is some: memory is bounded by one piece each.
 *
 * What went wrong is said on stderr, and makes the exit status 1.
 */
#include "load.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "stream.h"
#include "wire.h"

#define BATCH 64

struct serve_conn {
	struct serve_conn *prev, *next;
	int fd;
	uint32_t events; /* asked of epoll */
	struct hello hello;
	size_t hello_held;
	struct stream stream;
	char *kept; /* what a short send left, or NULL */
	size_t kept_off, kept_len;
	bool eof;  /* the client has said FIN */
	bool shut; /* we have */
};

struct serve {
	const struct options *o;
	int epfd, listener, signals;
	struct serve_conn *conns;
	uint64_t accepted, bytes_in, bytes_out, checked, errors;
	bool stop;
};

static void conn_free(struct serve *s, struct serve_conn *c)
{
	if (c->prev)
		c->prev->next = c->next;
	else
		s->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;

	s->bytes_in += c->stream.got;
	s->bytes_out += c->stream.sent;
	if (c->hello.kind == HELLO_SINK && c->stream.stamped)
		s->checked += c->stream.got;
	close(c->fd);
	free(c->kept);
	free(c);
}

static bool hello_done(const struct serve_conn *c)
{
	return c->hello_held == sizeof(c->hello);
}

/* Has everything been said that will be? */
static bool conn_silent(const struct serve_conn *c)
{
	const struct stream *st = &c->stream;
	uint64_t count = c->hello.count;

	if (c->kept)
		return false;
	if (!hello_done(c))
		return c->eof;
	switch (c->hello.kind) {
	case HELLO_SOURCE:
		return count ? st->sent == count : c->eof;
	case HELLO_ECHO:
		return c->eof || (count && st->got == count);
	default:
		return c->eof;
	}
}

/* Sends, and keeps what does not fit. Nothing may be kept yet. */
static int conn_say(struct serve_conn *c, const void *data, size_t len)
{
	ssize_t n = send(c->fd, data, len, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN)
		return -errno;
	if (n < 0)
		n = 0;
	c->stream.sent += n;
	if ((size_t)n == len)
		return 0;

	c->kept = malloc(len - n);
	if (!c->kept)
		return -ENOMEM;
	memcpy(c->kept, (const char *)data + n, len - n);
	c->kept_off = 0;
	c->kept_len = len - n;
	return 0;
}

static int conn_say_kept(struct serve_conn *c)
{
	ssize_t n = send(c->fd, c->kept + c->kept_off,
			 c->kept_len - c->kept_off, MSG_NOSIGNAL);

	if (n < 0)
		return -errno;
	c->stream.sent += n;
	c->kept_off += n;
	if (c->kept_off == c->kept_len) {
		free(c->kept);
		c->kept = NULL;
	}
	return 0;
}

static int hello_read(struct serve_conn *c)
{
	ssize_t n = recv(c->fd, (char *)&c->hello + c->hello_held,
			 sizeof(c->hello) - c->hello_held, 0);

	if (n < 0)
		return -errno;
	c->hello_held += n;
	if (!n) {
		c->eof = true;
		/* Who says nothing at all only wanted to know if we are here. */
		return c->hello_held ? -EPROTO : 0;
	}
	if (!hello_done(c))
		return 0;
	if (c->hello.magic != HELLO_MAGIC || c->hello.kind < HELLO_SINK ||
	    c->hello.kind > HELLO_ECHO || !c->hello.stream)
		return -EPROTO;
	c->stream.id = c->hello.stream;
	c->stream.stamped = c->hello.stamped && c->hello.kind != HELLO_ECHO;
	return 0;
}

static int sink_end(struct serve *s, struct serve_conn *c)
{
	struct receipt receipt = {
		.magic = RECEIPT_MAGIC,
		.wrong = c->stream.wrong,
		.bytes = c->stream.got,
	};

	return s->o->raw ? 0 : conn_say(c, &receipt, sizeof(receipt));
}

static int conn_read(struct serve *s, struct serve_conn *c)
{
	struct stream *st = &c->stream;
	uint64_t most = STREAM_PIECE;
	ssize_t n;

	if (!hello_done(c))
		return hello_read(c);
	if (c->hello.kind == HELLO_ECHO && c->hello.count > st->got)
		most = c->hello.count - st->got;

	n = stream_recv(st, c->fd, most);
	if (n == -EBADMSG) {
		s->errors++;
		return 0;
	}
	if (n < 0)
		return n;
	c->eof = !n;
	if (c->eof && c->hello.kind == HELLO_SINK)
		return sink_end(s, c);
	if (n && c->hello.kind == HELLO_ECHO)
		return conn_say(c, st->piece, n);
	return 0;
}

static int conn_write(struct serve_conn *c)
{
	ssize_t n;

	if (c->kept)
		return conn_say_kept(c);
	n = stream_send(&c->stream, c->fd,
			c->hello.count ? c->hello.count - c->stream.sent
				       : UINT64_MAX);
	return n < 0 ? n : 0;
}

static uint32_t conn_wants(const struct serve_conn *c)
{
	bool source = hello_done(c) && c->hello.kind == HELLO_SOURCE;

	return (c->eof || c->kept ? 0 : EPOLLIN) |
	       (c->kept || (source && !c->shut) ? EPOLLOUT : 0);
}

/* Moves what is ready. Returns 0, -errno, or 1 when the connection is over. */
static int conn_step(struct serve *s, struct serve_conn *c, uint32_t ready)
{
	struct epoll_event ev = { .data.ptr = c };
	int err = 0;

	/* An error is reported by whatever is tried next. */
	if (ready & (EPOLLERR | EPOLLHUP))
		ready |= c->events;
	if (ready & c->events & EPOLLIN)
		err = conn_read(s, c);
	if (!err && ready & c->events & EPOLLOUT)
		err = conn_write(c);
	if (err && err != -EAGAIN)
		return err;

	if (!c->shut && conn_silent(c)) {
		shutdown(c->fd, SHUT_WR);
		c->shut = true;
	}
	if (c->shut && c->eof)
		return 1;

	ev.events = conn_wants(c);
	if (ev.events != c->events) {
		epoll_ctl(s->epfd, EPOLL_CTL_MOD, c->fd, &ev);
		c->events = ev.events;
	}
	return 0;
}

static void serve_step(struct serve *s, struct serve_conn *c, uint32_t ready)
{
	int err = conn_step(s, c, ready);

	if (!err)
		return;
	if (err < 0) {
		s->errors++;
		if (err == -EPROTO)
			complain("a connection did not begin with a hello of "
				 "sluice-load");
		else
			complain("stream %u: after %" PRIu64 " bytes in and "
				 "%" PRIu64 " out: %s",
				 c->stream.id, c->stream.got, c->stream.sent,
				 strerror(-err));
	}
	conn_free(s, c);
}

/* Where no hello comes, this is what it would have said. */
static void conn_raw(struct serve_conn *c, const struct options *o)
{
	c->hello.kind = o->raw;
	c->hello.count = o->bytes;
	c->hello_held = sizeof(c->hello);
	c->stream.id = 1;
	c->stream.stamped = o->check;
}

static int serve_accept(struct serve *s)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct serve_conn *c;
	int fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return errno == EAGAIN || errno == ECONNABORTED ? 0 : -errno;
	c = calloc(1, sizeof(*c));
	ev.data.ptr = c;
	if (!c || epoll_ctl(s->epfd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		close(fd);
		free(c);
		return -ENOMEM;
	}
	sock_nodelay(fd);
	c->fd = fd;
	c->events = ev.events;
	c->next = s->conns;
	if (c->next)
		c->next->prev = c;
	s->conns = c;
	s->accepted++;
	if (s->o->raw) {
		conn_raw(c, s->o);
		serve_step(s, c, 0);
	}
	return 0;
}

static void serve_event(struct serve *s, const struct epoll_event *ev)
{
	int err;

	if (ev->data.ptr == &s->signals) {
		s->stop = true;
	} else if (ev->data.ptr == &s->listener) {
		err = serve_accept(s);
		if (err) {
			complain("accepting: %s", strerror(-err));
			s->errors++;
			s->stop = true;
		}
	} else {
		serve_step(s, ev->data.ptr, ev->events);
	}
}

static void serve_loop(struct serve *s)
{
	uint64_t deadline = now_ns() + s->o->timeout_ns;
	struct epoll_event ev[BATCH];
	int i, n;

	while (!s->stop) {
		n = epoll_wait(s->epfd, ev, BATCH, wait_ms(deadline));
		for (i = 0; i < n; i++)
			serve_event(s, &ev[i]);
		if (!s->stop && now_ns() >= deadline) {
			complain("nobody has ended the server for %g seconds",
				 s->o->timeout_ns / 1e9);
			s->errors++;
			break;
		}
	}
}

static int serve_watch(struct serve *s, int fd, void *ptr)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = ptr };

	return epoll_ctl(s->epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* Returns 0, or a negative errno; serve_fini() is due either way. */
static int serve_init(struct serve *s, const struct options *o)
{
	char local[ADDRESS_TEXT];
	sigset_t set;
	int err;

	*s = (struct serve){ .o = o, .signals = -1, .listener = -1 };
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);

	s->epfd = epoll_create1(EPOLL_CLOEXEC);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (s->epfd < 0 || s->signals < 0)
		return -errno;
	s->listener = sock_listen(&o->address);
	if (s->listener < 0)
		return s->listener;
	err = address_local(local, s->listener);
	if (!err)
		err = serve_watch(s, s->signals, &s->signals);
	if (!err)
		err = serve_watch(s, s->listener, &s->listener);
	if (err)
		return err;
	printf("listening %s\n", local);
	fflush(stdout);
	return 0;
}

static void serve_fini(struct serve *s)
{
	while (s->conns)
		conn_free(s, s->conns);
	close(s->listener);
	close(s->signals);
	close(s->epfd);
}

int serve_run(const struct options *o)
{
	struct serve s;
	int err = serve_init(&s, o);

	if (err) {
		complain("cannot listen on %s: %s", o->where, strerror(-err));
		serve_fini(&s);
		return 1;
	}
	serve_loop(&s);
	serve_fini(&s);
	printf("{\"connections\":%" PRIu64 ",\"bytes_in\":%" PRIu64
	       ",\"bytes_out\":%" PRIu64 ",\"checked\":%" PRIu64
	       ",\"errors\":%" PRIu64 "}\n",
	       s.accepted, s.bytes_in, s.bytes_out, s.checked, s.errors);
	return s.errors ? 1 : 0;
}
