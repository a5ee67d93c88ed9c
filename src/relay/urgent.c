/* SPDX-License-Identifier: MIT */
/*
 * urgent.c - TCP urgent data on its way through a lane
 *
 * splice(2) cannot cross the mark: it says EAGAIN there for ever, and after the
 * FIN it says 0 with bytes still queued (K7). So once EPOLLPRI has announced
 * urgent data, the lane reads with recv(2), which stops at the mark; reads the
 * one byte there by itself; passes it on as urgent, behind all that came before
 * it; and goes back to what it did.
 *
 * Both sockets have SO_OOBINLINE set, so that the urgent byte has its place
 * among the others. Without it, a recv(2) that finds itself at a mark which
 * epoll has not told of yet steps over the byte, and it is lost; with it, the
 * worst is that the byte goes on as an ordinary one.
 */
#include <poll.h>
#include <sys/socket.h>

#include "base/util.h"
#include "net/sock.h"
#include "relay/lane.h"

/**
 * urgent_look() - look for a mark before a read that takes many bytes
 *
 * Such a read of a socket with SO_OOBINLINE does not stop in front of an urgent
 * byte that it begins with: that goes on as an ordinary one. After epoll, or
 * poll(2), has told of bytes and of none that is urgent, one read begins with one
 * of those; the next may not, so it is asked again. Behind a FIN no mark can come
 * that it has not told of.
 *
 * Return: whether there is anything to read.
 */
bool urgent_look(struct relay *r, struct side *from)
{
	bool fresh = from->watch.ready & WATCH_UNREAD;
	short unread;

	watch_clear(&from->watch, WATCH_UNREAD);
	if (fresh || from->urgent || from->watch.ready & EPOLLRDHUP)
		return true;
	unread = sock_unread(from->watch.fd);
	if (unread & POLLPRI)
		side_urgent(r, from);
	return unread;
}

/* Reads the byte at the mark. Return: as conduit_ops.fill. */
static ssize_t take_byte(struct relay *r, unsigned i)
{
	struct lane *l = &r->lane[i];
	ssize_t n = recv(r->side[i].watch.fd, &l->urgent_byte, 1, 0);

	relay_call(&r->env->stats.recv, n > 0 ? 1 : 0);
	if (n < 0)
		return -errno;
	l->urgent = n == 1;
	r->side[i].urgent = false;
	return n;
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

	if (sock_at_mark(from->watch.fd))
		return take_byte(r, i);
	n = c->ops->fill(c, from->watch.fd);
	if (!(sock_unread(from->watch.fd) & POLLPRI))
		from->urgent = false; /* it went by as an ordinary byte */
	return n;
}

/* Sends the urgent byte that lane @i holds. Return: as conduit_ops.drain. */
ssize_t urgent_drain(struct relay *r, unsigned i)
{
	struct lane *l = &r->lane[i];
	ssize_t n = send(r->side[!i].watch.fd, &l->urgent_byte, 1,
			 MSG_OOB | MSG_NOSIGNAL);

	relay_call(&r->env->stats.send, n > 0 ? 1 : 0);
	if (n < 0)
		return -errno;
	l->urgent = false;
	return n;
}
