/* SPDX-License-Identifier: MIT */
/*
 * sim_out.c - what leaves a socket is what came in at its twin
 *
 * The invariants of the stream itself, looked at in the call that would break
 * one: the bytes written are a prefix of the bytes the source said, each at its
 * place; its urgent bytes are sent as urgent, and no other byte is; FIN is said
 * once, behind the last byte, and only if the source said it.
 */
#include "model/sim.h"

#include "support/stamp.h"

/* Steps over urgent bytes that nobody could have read. */
static void skip_lost(struct sim_sock *s)
{
	struct sim_mark *m;

	while ((m = tcp_mark(s->twin, s->out_at)) && m->fate == FATE_LOST)
		s->out_at++;
}

/* How many of @n bytes may follow at once: up to the next urgent byte. */
static size_t plain(struct sim_sock *s, size_t n)
{
	struct sim_sock *from = s->twin;

	skip_lost(s);
	for (unsigned i = 0; i < from->marks; i++) {
		struct sim_mark *m = &from->mark[i];

		if (m->fate == FATE_EITHER || m->at < s->out_at)
			continue;
		if (m->at == s->out_at && m->fate == FATE_TAKEN)
			sim_fail("the urgent byte at %lu is not sent as urgent",
				 (unsigned long)m->at);
		if (m->at - s->out_at < n)
			n = (size_t)(m->at - s->out_at);
	}
	if (!n || s->out_at + n > from->copied)
		sim_fail("more is sent on %u than was read", s->id);
	return n;
}

/* @n bytes of memory are written to @s. */
void out_bytes(struct sim_sock *s, const void *buf, size_t n)
{
	char why[STAMP_WHY];
	const char *p = buf;

	while (n) {
		size_t k = plain(s, n);

		if (stamp_check(p, s->twin->id, s->out_at, k) >= 0)
			sim_fail("wrong bytes on %u: %s", s->id,
				 stamp_explain(why, sizeof(why), p, s->twin->id,
					       s->out_at, k));
		s->out_at += k;
		p += k;
		n -= k;
	}
}

/* @n bytes of a pipe are written to @s. */
void out_range(struct sim_sock *s, unsigned stream, uint64_t at, size_t n)
{
	while (n) {
		size_t k = plain(s, n);

		if (stream != s->twin->id || at != s->out_at)
			sim_fail("wrong bytes on %u: byte %lu of stream %u, "
				 "not byte %lu of stream %u",
				 s->id, (unsigned long)at, stream,
				 (unsigned long)s->out_at, s->twin->id);
		s->out_at += k;
		at += k;
		n -= k;
	}
}

void out_urgent(struct sim_sock *s, const void *byte)
{
	struct sim_mark *m;

	skip_lost(s);
	m = tcp_mark(s->twin, s->out_at);
	if (!m || (m->fate != FATE_TAKEN && m->fate != FATE_EITHER))
		sim_fail("byte %lu on %u is sent as urgent, and is not",
			 (unsigned long)s->out_at, s->id);
	if (stamp_check(byte, s->twin->id, s->out_at, 1) >= 0)
		sim_fail("the wrong byte is sent as urgent on %u", s->id);
	s->out_at++;
}

/* Whether all that the source has said by now was written to @s. */
bool out_all(struct sim_sock *s)
{
	skip_lost(s);
	return s->out_at == s->twin->arrived;
}

/* FIN is said on @s. */
void out_fin(struct sim_sock *s)
{
	if (s->shut)
		sim_fail("FIN on %u for the second time", s->id);
	if (!s->twin->fin_in)
		sim_fail("FIN on %u, whose source has not said it", s->id);
	if (!out_all(s))
		sim_fail("FIN on %u behind byte %lu of %lu", s->id,
			 (unsigned long)s->out_at,
			 (unsigned long)s->twin->arrived);
}
