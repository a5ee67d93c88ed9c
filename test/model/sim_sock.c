/* SPDX-License-Identifier: MIT */
/*
 * sim_sock.c - our end of a TCP connection
 *
 * DOC: Theory of operation
 *
 * Bytes that have arrived wait in a queue of segments. Behind the last comes,
 * in this order (K20): 0, for ever, if the peer has said FIN; the error, once,
 * if the connection is dead; then 0. Whoever meets the error first takes it
 * away: recv(2), send(2), and splice(2) either way, but not shutdown(2).
 *
 * There is one mark (K7). A read that has got something stops before it. One
 * that begins at it reads on, the urgent byte first if SO_OOBINLINE is set, and
 * otherwise without it: it is gone then unless MSG_OOB took it. splice(2) stays
 * there: at the mark it has nothing to read, so that it says what comes behind
 * the last byte, though bytes are queued.
 *
 * A write is taken as long as less than @sndbuf waits for the peer; the edge
 * after a write that was cut short comes when a third of it is free.
 */
#include "model/sim.h"

#include <errno.h>
#include <sys/socket.h>

#include "support/stamp.h"

struct sim_sock *sim_sock_new(size_t sndbuf, size_t rcvbuf)
{
	struct sim_sock *s = &sim.sock[sim.socks];

	*s = (struct sim_sock){
		.file = sim_open(SIM_SOCK),
		.id = sim.socks++,
		.sndbuf = sndbuf,
		.rcvbuf = rcvbuf,
	};
	s->file->sock = s;
	return s;
}

static size_t unread(const struct sim_sock *s)
{
	return (size_t)(s->arrived - s->copied);
}

static size_t unacked(const struct sim_sock *s)
{
	return (size_t)(s->sent - s->acked);
}

/* SIOCATMARK: true of a byte that is announced and not here yet, too. */
bool tcp_at_mark(const struct sim_sock *s)
{
	return s->urg != URG_NONE && s->urg_at == s->copied;
}

/* Whether a recv(2) would get something. */
static bool is_readable(const struct sim_sock *s)
{
	return unread(s) > (tcp_at_mark(s) && !s->oobinline ? 1 : 0);
}

/* Whether poll says that it can be written. */
bool tcp_is_writable(const struct sim_sock *s)
{
	size_t n = unacked(s);

	return s->shut || s->closed || (n < s->sndbuf && n + n / 2 <= s->sndbuf);
}

/* As tcp_poll() of the kernel. */
uint32_t tcp_poll(struct sim_sock *s)
{
	bool in_shut = s->fin_in || s->closed, out_shut = s->shut || s->closed;
	uint32_t mask = 0;

	if (in_shut && out_shut)
		mask |= EPOLLHUP;
	if (in_shut)
		mask |= EPOLLIN | EPOLLRDHUP;
	if (is_readable(s))
		mask |= EPOLLIN;
	if (tcp_is_writable(s))
		mask |= EPOLLOUT;
	if (s->urg == URG_VALID)
		mask |= EPOLLPRI;
	if (s->err)
		mask |= EPOLLERR;
	return mask;
}

/* Whether a reader who tries hard finds something: what must not be slept on. */
bool tcp_has_news(const struct sim_sock *s)
{
	return s->urg == URG_VALID || s->fin_in || s->closed || is_readable(s);
}

/* What is said when there is nothing to read. */
int tcp_said_end(struct sim_sock *s)
{
	int err = s->err;

	if (s->fin_in)
		return 0;
	s->err = 0;
	if (err)
		return -err;
	return s->closed ? 0 : -EAGAIN;
}

/* Up to @len bytes that can be read without a step over the mark. */
size_t tcp_ready(const struct sim_sock *s, size_t len)
{
	size_t n = unread(s);

	if (s->urg != URG_NONE && s->urg_at >= s->copied &&
	    s->urg_at - s->copied < n)
		n = (size_t)(s->urg_at - s->copied);
	return n < len ? n : len;
}

/* Takes @n bytes off the queue. */
void tcp_take(struct sim_sock *s, size_t n)
{
	s->copied += n;
	while (s->segs && s->seg[s->seg_first] <= s->copied) {
		s->seg_first = (s->seg_first + 1) % SIM_SEGS;
		s->segs--;
	}
	if (s->urg != URG_NONE && s->copied > s->urg_at)
		s->urg = URG_NONE;
}

/* The reader has got @n bytes. */
void tcp_got(struct sim_sock *s, size_t n)
{
	s->taken += n;
	s->moved_ns = sim.now_ns;
	s->turn_read += n;
	if (s->turn_most < n)
		s->turn_most = n;
}

/* A read begins at the mark, without SO_OOBINLINE. */
static void step_over(struct sim_sock *s)
{
	struct sim_mark *m = tcp_mark(s, s->urg_at);

	if (s->urg == URG_VALID) {
		m->fate = FATE_LOST;
		if (sim.on && m->told && !s->closed)
			sim_fail("recv(2) on %u stepped over the urgent byte "
				 "at %lu that epoll had told of",
				 s->id, (unsigned long)m->at);
	}
	tcp_take(s, 1);
}

/* A read of @n bytes begins at the mark, with SO_OOBINLINE. */
static void read_mark(struct sim_sock *s, size_t n)
{
	struct sim_mark *m = tcp_mark(s, s->urg_at);

	m->fate = m->told ? FATE_TAKEN : FATE_EITHER;
	if (sim.on && m->told && n > 1)
		sim_fail("recv(2) on %u read the urgent byte at %lu, that "
			 "epoll had told of, among others",
			 s->id, (unsigned long)m->at);
}

static ssize_t recv_urgent(struct sim_sock *s, void *buf)
{
	struct sim_mark *m = tcp_mark(s, s->urg_at);

	if (s->urg == URG_NONE || s->urg == URG_READ || s->oobinline)
		return -EINVAL;
	if (s->closed && !s->fin_in)
		return -ENOTCONN;
	if (s->urg == URG_NOTYET)
		return s->closed || s->fin_in ? 0 : -EAGAIN;
	s->urg = URG_READ;
	m->fate = FATE_TAKEN;
	tcp_got(s, 1);
	stamp_fill(buf, s->id, m->at, 1);
	return 1;
}

ssize_t tcp_recv(struct sim_sock *s, void *buf, size_t len, int flags)
{
	bool at_mark = tcp_at_mark(s) && unread(s), peek = flags & MSG_PEEK;
	uint64_t at = s->copied + (at_mark && !s->oobinline);
	size_t n;

	if (flags & MSG_OOB)
		return recv_urgent(s, buf);
	if (at_mark && !s->oobinline && !peek)
		step_over(s);
	n = at_mark ? (size_t)(s->arrived - at) : tcp_ready(s, len);
	n = n < len ? n : len;
	if (!n)
		return tcp_said_end(s);
	if (!(flags & MSG_TRUNC))
		stamp_fill(buf, s->id, at, n);
	if (peek)
		return (ssize_t)n;
	if (flags & MSG_TRUNC)
		sim.discarded += n;
	else if (at_mark && s->oobinline)
		read_mark(s, n);
	tcp_take(s, n);
	tcp_got(s, n);
	return (ssize_t)n;
}

/* How many of @len bytes a write may add, or why none. */
ssize_t tcp_room(struct sim_sock *s, size_t len)
{
	size_t n;
	int err = s->err;

	if (err || s->shut || s->closed) {
		s->err = 0;
		return err ? -err : -EPIPE;
	}
	if (unacked(s) >= s->sndbuf) {
		s->nospace = true;
		return -EAGAIN;
	}
	n = s->sndbuf - unacked(s);
	if (n > len)
		n = len;
	if (sim.rules.chop && n > 1)
		n = 1 + choose((unsigned)n);
	if (n < len)
		s->nospace = true;
	s->moved_ns = sim.now_ns;
	return (ssize_t)n;
}

ssize_t tcp_send(struct sim_sock *s, const void *buf, size_t len, int flags)
{
	ssize_t n = tcp_room(s, len);

	if (n <= 0)
		return n;
	if (!(flags & MSG_OOB))
		out_bytes(s, buf, (size_t)n);
	else if (len == 1)
		out_urgent(s, buf);
	else
		sim_fail("%zu bytes sent as urgent", len);
	s->sent += (size_t)n;
	return n;
}

int tcp_shutdown(struct sim_sock *s)
{
	if (s->closed) {
		sim_wake(s->file, 0);
		return -ENOTCONN;
	}
	out_fin(s);
	s->shut = true;
	s->moved_ns = sim.now_ns;
	sim_wake(s->file, 0);
	return 0;
}

/* SIOCOUTQ: a FIN on its way counts as one; a RST does not set it to 0. */
int tcp_unsent(const struct sim_sock *s)
{
	return (int)unacked(s) + (s->shut && !s->fin_acked);
}

/* The last descriptor is closed: FIN, or RST if asked for or if unread. */
void tcp_close(struct sim_sock *s)
{
	s->orphan = true;
	if (s->closed)
		return;
	if (s->linger0 || unread(s)) {
		trace("RST out", (int)s->id, (long)unacked(s), (long)unread(s));
		s->rst_out = s->closed = true;
		return;
	}
	if (!s->shut)
		out_fin(s);
	s->shut = true;
}
