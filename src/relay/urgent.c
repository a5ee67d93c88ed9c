/* SPDX-License-Identifier: MIT */
/*
 * urgent.c - TCP urgent data on its way through a lane
 *
 * splice(2) cannot cross the mark: it says EAGAIN there for ever, and after the
 * FIN it says 0 with bytes still queued (K7). So from the moment EPOLLPRI
 * announces urgent data, the lane reads with recv(2), which stops at the mark;
 * takes the byte there with MSG_OOB; passes it on as urgent, behind all that
 * came before it; and goes back to what it did once it has read past the mark.
 */
#include <sys/socket.h>

#include "base/util.h"
#include "net/sock.h"
#include "relay/relay.h"

/* At the mark. Return: 1 if the byte was taken, 0 if there is none. */
static ssize_t take_byte(struct relay *r, unsigned i)
{
	struct lane *l = &r->lane[i];
	ssize_t n = recv(r->side[i].watch.fd, &l->urgent_byte, 1, MSG_OOB);

	tally_call(&r->env->tally.recv, n > 0 ? 1 : 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -errno; /* announced, and still to come */
	l->urgent = n == 1;
	r->side[i].urgent = URGENT_TAKEN;
	return l->urgent;
}

/**
 * urgent_fill() - read of a side that has urgent data under way
 *
 * The lane must hold nothing but an empty buffer.
 *
 * Return: as conduit_ops.fill; 1 for the urgent byte too.
 */
ssize_t urgent_fill(struct relay *r, unsigned i)
{
	struct side *from = &r->side[i];
	struct conduit *c = r->lane[i].conduit;
	ssize_t n;

	if (from->urgent == URGENT_AHEAD && sock_at_mark(from->watch.fd)) {
		n = take_byte(r, i);
		if (n)
			return n;
	}
	n = c->ops->fill(c, from->watch.fd);
	if (n > 0 && from->urgent == URGENT_TAKEN)
		from->urgent = URGENT_NONE;
	return n;
}

/* Sends the urgent byte that lane @i holds. Return: as conduit_ops.drain. */
ssize_t urgent_drain(struct relay *r, unsigned i)
{
	struct lane *l = &r->lane[i];
	ssize_t n = send(r->side[!i].watch.fd, &l->urgent_byte, 1,
			 MSG_OOB | MSG_NOSIGNAL);

	tally_call(&r->env->tally.send, n > 0 ? 1 : 0);
	if (n < 0)
		return -errno;
	l->urgent = false;
	return n;
}
