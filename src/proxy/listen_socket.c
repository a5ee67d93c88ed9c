/* SPDX-License-Identifier: MIT */
/*
 * listen_socket.c - a socket that listens; it outlives the workers
 *
 * To close one resets the clients in its queue (K23), so that it is closed only
 * when its rule is gone, or at the end.
 */
#include "proxy/listen_socket.h"

#include <fcntl.h>

#include "base/util.h"
#include "net/sock.h"

/* The kernel caps it at net.core.somaxconn: a burst of clients waits there. */
#define BACKLOG 65535

/* Listens; accepted sockets inherit what is set on the socket (K35). */
static int open_socket(const struct sockopts *opts, const struct addr *at,
		       unsigned *lacks)
{
	cleanup(close_fdp) int fd = sock_listen(at, BACKLOG, opts);
	int err = 0;

	if (fd < 0)
		return steal_fd(&fd);
	*lacks = sock_lacks(fd);
	if (opts->keepalive.idle_s)
		err = sockopts_set_keepalive(fd, &opts->keepalive);
	if (err && !opts->keepalive.requested)
		*lacks |= LISTEN_LACKS_KEEPALIVE;
	else if (err)
		return err;
	return steal_fd(&fd);
}

/**
 * listen_socket_open() - listen at one address of a route
 *
 * Return: 0, or a negative errno and there is nothing to close.
 */
int listen_socket_open(struct listen_socket *l, struct route *route,
		       const struct addr *at)
{
	unsigned lacks;
	int fd = open_socket(&route->rule->options.sockopts, at, &lacks);
	socklen_t len = sizeof(l->at);

	if (fd < 0)
		return fd;
	*l = (struct listen_socket){
		.fd = fd, .at = *at, .lacks = lacks, .route = route_ref(route)
	};
	(void)getsockname(fd, &l->at.sa, &len); /* for port 0 */
	if (at->sa.sa_family == AF_INET6 && at->in6.sin6_scope_id)
		(void)if_indextoname(at->in6.sin6_scope_id, l->device);
	return 0;
}

/* No acceptor watches it any more. */
void listen_socket_close(struct listen_socket *l)
{
	l->fd = close_fd(l->fd);
	route_unref(l->route);
}

/* Whether its interface has another index than when it was opened. */
bool listen_socket_is_stale(const struct listen_socket *l)
{
	unsigned index = *l->device ? if_nametoindex(l->device) : 0;

	return index && index != l->at.in6.sin6_scope_id;
}

/**
 * listen_socket_reopen() - put another socket in the place of one that failed
 *
 * Called by the thread that accepts from it, while it is not watched. Clients in
 * the queue of the old socket are reset, if it still has any.
 *
 * Return: 0; or a negative errno, and the old one is still there, but does not
 *	listen.
 */
int listen_socket_reopen(struct listen_socket *l)
{
	struct addr at = l->at;
	cleanup(close_fdp) int fd = -1;
	unsigned lacks;

	/* If it still listened, it would keep the address in use. */
	(void)shutdown(l->fd, SHUT_RDWR);
	if (*l->device)
		at.in6.sin6_scope_id = if_nametoindex(l->device);
	if (*l->device && !at.in6.sin6_scope_id)
		return -ENODEV;
	fd = open_socket(&l->route->rule->options.sockopts, &at, &lacks);
	if (fd < 0)
		return steal_fd(&fd);
	if (dup3(fd, l->fd, O_CLOEXEC) < 0)
		return -errno;
	l->at = at;
	l->lacks = lacks;
	return 0;
}
