/* SPDX-License-Identifier: MIT */
/*
 * sim_pipe.c - pipes, and splice(2) through them
 *
 * DOC: Theory of operation
 *
 * A pipe is full by slots (K1): what is spliced in takes one for each segment
 * it touches, however small; a slot partly drained stays occupied (K3); and no
 * more bytes are asked of the socket than the free slots have pages. A full
 * pipe says EAGAIN before the socket is asked (K4, K5), so the socket's end is
 * not told then. Bytes leave by splice(2) or by read(2) (K34).
 *
 * Some things are lawful, cost dearly, and are failures here: to fill a pipe
 * that holds bytes (K2, and EAGAIN would say nothing), to ask for none (K6), to
 * drain with another length than what is held (K9).
 */
#include "model/sim.h"

#include <errno.h>

#include "support/stamp.h"

int sim_pipe_new(int fd[2])
{
	struct sim_pipe *p = NULL;
	struct sim_file *f;

	for (unsigned i = 0; i < SIM_PIPES && !p; i++)
		if (!sim.pipe[i].ends)
			p = &sim.pipe[i];
	if (!p)
		return -ENFILE;
	*p = (struct sim_pipe){ .ends = 2,
				.room = sim.rules.slots,
				.size = SIM_SLOTS * SIM_PAGE };
	f = sim_open(SIM_PIPE_OUT);
	f->pipe = p;
	fd[0] = f->fd;
	f = sim_open(SIM_PIPE_IN);
	f->pipe = p;
	fd[1] = f->fd;
	return 0;
}

void sim_pipe_close(struct sim_pipe *p)
{
	p->ends--;
}

static void push(struct sim_pipe *p, unsigned stream, uint64_t at, size_t n)
{
	p->slot[(p->first + p->n++) % SIM_SLOTS] =
		(struct sim_slot){ .stream = stream, .at = at, .n = n };
	p->bytes += n;
}

/* Takes up to @n bytes of the oldest slot. */
static struct sim_slot pull(struct sim_pipe *p, size_t n)
{
	struct sim_slot *s = &p->slot[p->first], piece = *s;

	if (piece.n > n)
		piece.n = n;
	s->at += piece.n;
	s->n -= piece.n;
	if (!s->n) {
		p->first = (p->first + 1) % SIM_SLOTS;
		p->n--;
	}
	p->bytes -= piece.n;
	return piece;
}

ssize_t sim_splice_in(struct sim_sock *s, struct sim_pipe *p, size_t len)
{
	size_t room = (size_t)(p->room - p->n) * SIM_PAGE, total = 0, n;

	if (p->bytes)
		sim_fail("a pipe that holds %zu bytes is filled", p->bytes);
	if (!room)
		return -EAGAIN;
	if (len > room)
		len = room;
	while (total < len && p->n < p->room && s->segs) {
		n = (size_t)(s->seg[s->seg_first] - s->copied);
		if (n > len - total)
			n = len - total;
		n = tcp_ready(s, n);
		if (!n)
			break; /* at the mark */
		push(p, s->id, s->copied, n);
		tcp_take(s, n);
		total += n;
	}
	if (!total)
		return tcp_said_end(s);
	tcp_got(s, total);
	return (ssize_t)total;
}

ssize_t sim_splice_out(struct sim_pipe *p, struct sim_sock *s, size_t len)
{
	ssize_t n;

	if (!p->bytes)
		return -EAGAIN;
	if (len != p->bytes)
		sim_fail("%zu bytes asked of a pipe that holds %zu", len,
			 p->bytes);
	n = tcp_room(s, len);
	if (n <= 0)
		return n;
	for (size_t left = (size_t)n; left;) {
		struct sim_slot piece = pull(p, left);

		out_range(s, piece.stream, piece.at, piece.n);
		left -= piece.n;
	}
	s->sent += (size_t)n;
	s->by_pipe += (size_t)n;
	/* It sends 16 slots at a time. If a RST comes between two of those,
	 * the error is taken, and what was moved before is reported. */
	if (sim.rules.chop && p->bytes && peer_lives(s) && !s->closed &&
	    !choose(40)) {
		peer_dies(s, 0);
		s->err = 0;
	}
	return n;
}

/* Whose bytes are in it; NULL if none are. */
struct sim_sock *sim_pipe_source(const struct sim_pipe *p)
{
	return p->n ? &sim.sock[p->slot[p->first].stream] : NULL;
}

ssize_t sim_pipe_read(struct sim_pipe *p, void *buf, size_t len)
{
	size_t total = 0;

	if (!p->bytes)
		return -EAGAIN;
	while (total < len && p->bytes) {
		struct sim_slot piece = pull(p, len - total);

		stamp_fill((char *)buf + total, piece.stream, piece.at, piece.n);
		total += piece.n;
	}
	return (ssize_t)total;
}
