/* SPDX-License-Identifier: MIT */
/*
 * sim_peer.c - what the other end of a connection does
 *
 * A peer's segments arrive at once, if the window has room for them; what we
 * write arrives when the peer reads, which is also when it is acknowledged. A
 * peer that has said FIN goes on reading; one that is dead, or that was sent a
 * RST, does nothing any more.
 */
#include "model/sim.h"

#include <errno.h>

bool peer_lives(const struct sim_sock *s)
{
	return !s->dead && !s->rst_out;
}

/* The urgent byte at @at, NULL if there is none. */
struct sim_mark *tcp_mark(struct sim_sock *s, uint64_t at)
{
	for (unsigned i = s->marks; i-- > 0;)
		if (s->mark[i].at == at)
			return &s->mark[i];
	return NULL;
}

/* Room in the window: what it may say now. */
size_t peer_window(const struct sim_sock *s)
{
	size_t unread = (size_t)(s->arrived - s->copied);

	if (s->closed || s->fin_in || s->segs == SIM_SEGS)
		return 0;
	return unread < s->rcvbuf ? s->rcvbuf - unread : 0;
}

/* One segment. */
static void arrive(struct sim_sock *s, size_t n)
{
	s->arrived += n;
	s->seg[(s->seg_first + s->segs++) % SIM_SEGS] = s->arrived;
	if (s->urg == URG_NOTYET && s->urg_at < s->arrived)
		s->urg = URG_VALID;
	if (s->promised && s->promised < s->arrived)
		s->promised = 0;
	sim_wake(s->file, EPOLLIN | EPOLLPRI);
}

/**
 * peer_send() - say one segment of @n bytes, less if the window is smaller
 */
void peer_send(struct sim_sock *s, size_t n)
{
	size_t room = peer_window(s);

	if (n > room)
		n = room;
	if (!n)
		return;
	trace("peer sends", (int)s->id, (long)n, (long)s->arrived);
	arrive(s, n);
}

/* A segment says that there is an urgent byte at @at: tcp_check_urg(). */
static void new_mark(struct sim_sock *s, uint64_t at)
{
	struct sim_mark *old = tcp_mark(s, s->urg_at);

	if (s->urg != URG_NONE && old && at <= s->urg_at)
		return;
	if (s->urg != URG_NONE && old && old->fate == FATE_AHEAD)
		old->fate = FATE_EITHER;
	/* Whoever stood at the old mark is put behind it. */
	if (tcp_at_mark(s) && s->copied != s->arrived && !s->oobinline) {
		if (old && old->fate == FATE_EITHER)
			old->fate = FATE_LOST;
		tcp_take(s, 1);
	}
	s->urg = URG_NOTYET;
	s->file->mask &= ~(uint32_t)EPOLLPRI; /* the next is another one */
	s->urg_at = at;
	s->mark[s->marks++] = (struct sim_mark){ .at = at };
}

/* Says one byte, as urgent. */
void peer_urgent(struct sim_sock *s)
{
	trace("peer sends urgent", (int)s->id, 1, (long)s->arrived);
	if (!peer_window(s) || s->marks == SIM_MARKS || s->promised)
		return;
	new_mark(s, s->arrived);
	arrive(s, 1);
}

/* Says a byte, and that there will be an urgent one @ahead bytes behind it. */
void peer_promise(struct sim_sock *s, size_t ahead)
{
	trace("peer promises urgent", (int)s->id, (long)ahead, (long)s->arrived);
	if (!peer_window(s) || s->marks == SIM_MARKS || s->promised)
		return;
	s->promised = s->arrived + 1 + ahead;
	new_mark(s, s->promised);
	arrive(s, 1);
}

/* Says FIN, behind what it has promised. */
void peer_fin(struct sim_sock *s)
{
	trace("peer FIN", (int)s->id, (long)s->arrived, 0);
	if (s->closed || s->fin_in || s->segs == SIM_SEGS)
		return;
	if (s->promised)
		arrive(s, (size_t)(s->promised + 1 - s->arrived));
	s->fin_in = true;
	if (s->shut && s->fin_acked)
		s->closed = true; /* TIME_WAIT is no socket of ours */
	sim_wake(s->file, 0);
}

/* The connection ends by a RST (@err 0), or because nobody answers. */
void peer_dies(struct sim_sock *s, int err)
{
	trace(err ? "connection dies" : "peer RST", (int)s->id, err, 0);
	if (s->closed)
		return;
	if (!err)
		err = s->fin_in && !s->shut ? EPIPE : ECONNRESET;
	s->err = err;
	s->closed = s->dead = true;
	if (!s->failed) {
		s->dead_err = err;
		s->dead_ns = sim.now_ns;
	}
	sim_wake(s->file, 0);
	sim_wake(s->file, EPOLLERR);
}

/**
 * peer_read() - take up to @n of what we wrote, and then our FIN
 */
void peer_read(struct sim_sock *s, size_t n)
{
	uint64_t left = s->sent - s->acked;

	if (s->dead || s->rst_out)
		return;
	trace("peer reads", (int)s->id, (long)(left < n ? left : n),
	      (long)s->acked);
	s->acked += left < n ? left : n;
	if (left < n && s->shut && !s->fin_acked) {
		trace("peer reads FIN", (int)s->id, 0, 0);
		s->fin_acked = true;
		if (s->fin_in) {
			s->closed = true;
			sim_wake(s->file, 0);
		}
	}
	if (s->nospace && tcp_is_writable(s)) {
		s->nospace = false;
		sim_wake(s->file, EPOLLOUT);
	}
}
