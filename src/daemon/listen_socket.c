/* SPDX-License-Identifier: MIT */
/*
 * listening.c - the sockets that listen, before a worker watches them
 *
 * They are the server's and not the workers': closing one of them resets the
 * clients in its queue (K23), so they are closed once, at the end.
 */
#include "daemon/listen_socket.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "proxy/acceptor.h"
#include "net/sock.h"

/* As long as the kernel lets us: a burst of clients waits there, not lost. */
#define BACKLOG 65535

/* Ports to try where one must be free at all addresses of a rule. */
#define PORT_TRIES_MAX 256

/* Beside enum sock_lack. */
#define LACKS_KEEPALIVE 8

/* Says what is unavailable, of options that only improve a connection, and what
 * follows: once in the life of the program. */
static void say_once(unsigned lacks)
{
	static const struct {
		unsigned what;
		const char *text;
	} follows[] = {
		{ SOCK_LACKS_NODELAY,
		  "TCP_NODELAY unavailable; small messages may be delayed" },
		{ SOCK_LACKS_OOBINLINE,
		  "SO_OOBINLINE unavailable on listening sockets; urgent data "
		  "may be forwarded as ordinary data" },
		{ SOCK_LACKS_REUSEADDR,
		  "SO_REUSEADDR unavailable; after a restart the address may "
		  "be in use for a minute" },
		{ LACKS_KEEPALIVE, "keepalive unavailable; clients that have "
				   "vanished are not noticed" },
	};
	static _Atomic unsigned said;

	lacks &= ~atomic_fetch_or(&said, lacks);
	for (size_t i = 0; i < array_size(follows); i++)
		if (lacks & follows[i].what)
			log_warn("%s", follows[i].text);
}

/* Listens; what is set on the socket is inherited by those it accepts. */
static int open_socket(const struct conf *conf, const struct addr *at)
{
	const struct sockopts *tuning = &conf->sockopts;
	cleanup(close_fdp) int fd = sock_listen(at, BACKLOG, tuning);
	int err = 0;

	if (fd < 0)
		return steal_fd(&fd);
	if (tuning->keepalive.idle_s)
		err = sockopts_set_keepalive(fd, &tuning->keepalive);
	if (err && !tuning->keepalive.requested)
		say_once(LACKS_KEEPALIVE);
	else if (err)
		return err;
	return steal_fd(&fd);
}

/* Says what the kernel made smaller. */
static void say_capped(const char *name, int wished, int got, const char *limit)
{
	if (got < wished)
		log_warn("--%s=%d: the kernel grants %d (%s)", name, wished,
			 got, limit);
}

/* Whether the kernel lets us set on sockets what was asked for. */
static int try_tuning(const struct conf *conf)
{
	const struct sockopts *t = &conf->sockopts;
	struct sockopts got;
	int err;
	const char *refused = sockopts_try(t, &got, &err);

	if (refused && !strcmp(refused, "congestion")) {
		log_error("--congestion=%s: %s; see net.ipv4.tcp_%s"
			  "_congestion_control",
			  t->congestion,
			  err == -ENOENT ? "the kernel does not have it"
					 : strerror(-err),
			  err == -EPERM ? "allowed" : "available");
	} else if (refused) {
		log_error("--%s: the kernel refuses it: %s", refused,
			  strerror(-err));
	} else {
		say_capped("rcvbuf", t->rcvbuf, got.rcvbuf, "net.core.rmem_max");
		say_capped("sndbuf", t->sndbuf, got.sndbuf, "net.core.wmem_max");
		if (t->mptcp && !got.mptcp)
			log_warn("MPTCP unavailable: %s; TCP is used instead",
				 strerror(-err));
	}
	return refused ? -1 : 0;
}

/* Whether @err says that this machine does not have an address. */
static bool is_absent(int err)
{
	return err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL;
}

static void close_from(struct server *s, unsigned first)
{
	while (s->n_open > first)
		close_fd(s->open[--s->n_open].fd);
}

/* Return: 0, or a negative errno. */
static int open_one(struct server *s, const struct rule *rule,
		    const struct addr *at)
{
	int fd = open_socket(s->conf, at);
	struct listen_socket *l = &s->open[s->n_open];
	socklen_t len = sizeof(l->at);

	if (fd < 0)
		return fd;
	*l = (struct listen_socket){
		.fd = fd, .at = *at, .rule = rule, .lacks = sock_lacks(fd)
	};
	(void)getsockname(fd, &l->at.sa, &len); /* for port 0 */
	if (at->sa.sa_family == AF_INET6 && at->in6.sin6_scope_id)
		(void)if_indextoname(at->in6.sin6_scope_id, l->device);
	s->n_open++;
	return 0;
}

/*
 * Opens a socket at each address of a rule, but for those that this machine does
 * not have, as long as one remains.
 *
 * @port:	to use where the rule leaves it open; 0 leaves it to the kernel
 *
 * Return: 0, or a negative errno, and @at is where it failed.
 */
static int open_all(struct server *s, const struct rule *rule, uint16_t port,
		    struct addr *at)
{
	unsigned first = s->n_open;
	int absent = 0;

	for (unsigned i = 0; i < rule->n_listens; i++) {
		int err;

		*at = rule->listens[i];
		if (port)
			addr_set_port(at, port);
		/* Port 0: what the kernel chose first is for all. */
		if (!rule->listen.port && s->n_open > first)
			addr_set_port(at, addr_port(&s->open[first].at));
		err = open_one(s, rule, at);
		if (is_absent(err))
			absent = err;
		else if (err)
			return err;
	}
	return s->n_open > first ? 0 : absent;
}

/* Of a name: "*" has always stood for what there is. */
static void say_left_out(const struct server *s, const struct rule *rule,
			 unsigned first)
{
	char text[ADDR_STRLEN];

	for (unsigned i = 0, k = first; i < rule->n_listens; i++) {
		struct addr at = rule->listens[i];

		addr_set_port(&at, addr_port(&s->open[first].at));
		if (k < s->n_open && addr_equal(&at, &s->open[k].at))
			k++;
		else if (!rule->any)
			log_warn("%s%s%s: %s left out: this machine does not "
				 "have the address",
				 rule->where, rule_colon(rule),
				 rule->listen.host, addr_format(&at, text));
	}
}

static void say_failed(const struct rule *rule, const struct addr *at, int err,
		       unsigned tries)
{
	char text[ADDR_STRLEN], note[48] = "";

	if (tries > 1)
		snprintf(note, sizeof(note), " (%u other ports tried)",
			 tries - 1);
	if (rule->any && is_absent(err))
		log_error("%s%sno network protocol to listen with", rule->where,
			  rule_colon(rule));
	else
		log_error("%s%scannot listen at %s: %s%s", rule->where,
			  rule_colon(rule), addr_format(at, text),
			  strerror(-err), note);
}

/* Has workers accept. Return: 0, or -1 and the reason has been logged. */
static int watch_from(struct server *s, unsigned first)
{
	char text[ADDR_STRLEN];

	for (unsigned i = first; i < s->n_open; i++) {
		struct listen_socket *l = &s->open[i];
		struct worker *w = &s->workers[(i + 1) % s->n_workers];
		int err = acceptor_new(w, l);

		if (err) {
			log_error("%s: %s", addr_format(&l->at, text),
				  strerror(-err));
			return -1;
		}
		say_once(l->lacks);
	}
	return 0;
}

/*
 * A port that is free at the first address may be in use at the next: then
 * another is tried. The kernel chooses an odd one as long as there is one (it
 * keeps the others for connect(2)): so its neighbour is tried too.
 */
static int open_rule(struct server *s, const struct rule *rule)
{
	unsigned first = s->n_open, tries = 0;
	bool may_choose = !rule->listen.port && rule->n_listens > 1;
	uint16_t port = 0, chosen;
	struct addr at;
	int err;

	do {
		err = open_all(s, rule, port, &at);
		tries++;
		if (!err)
			break;
		chosen = s->n_open > first ? addr_port(&s->open[first].at) : 0;
		port = port ? 0 : chosen ^ 1;
		close_from(s, first);
	} while (err == -EADDRINUSE && may_choose && tries < PORT_TRIES_MAX);
	if (err) {
		say_failed(rule, &at, err, tries);
		return -1;
	}
	say_left_out(s, rule, first);
	return watch_from(s, first);
}

/**
 * listen_sockets_open() - listen for every rule, and have workers accept
 *
 * Return: 0, or -1 and the reason has been logged; then listen_sockets_close()
 *	still has to follow.
 */
int listen_sockets_open(struct server *s)
{
	const struct conf *conf = s->conf;
	unsigned n = 0;

	if (try_tuning(conf))
		return -1;
	for (unsigned i = 0; i < conf->n_rules; i++)
		n += conf->rules[i].n_listens;
	s->open = calloc(n, sizeof(*s->open));
	if (!s->open) {
		log_error("%s", strerror(ENOMEM));
		return -1;
	}
	for (unsigned i = 0; i < conf->n_rules; i++)
		if (open_rule(s, &conf->rules[i]))
			return -1;
	return 0;
}

/* Once no worker watches them any more. */
void listen_sockets_close(struct server *s)
{
	close_from(s, 0);
}

/* Whether its interface has another index than when it was opened. */
bool listen_socket_is_stale(const struct listen_socket *l)
{
	unsigned index = *l->device ? if_nametoindex(l->device) : 0;

	return index && index != l->at.in6.sin6_scope_id;
}

/**
 * listen_socket_reopen() - put another socket in the place of one that has failed
 *
 * Called by the thread that watches it, and does not at the moment. Clients in
 * the queue of the old one are reset, if it still has any.
 *
 * Return: 0, or a negative errno and the old one is still there, but does not
 *	listen.
 */
int listen_socket_reopen(const struct server *s, struct listen_socket *l)
{
	struct addr at = l->at;
	cleanup(close_fdp) int fd = -1;

	/* Were it still listening, it would keep the address. */
	(void)shutdown(l->fd, SHUT_RDWR);
	if (*l->device)
		at.in6.sin6_scope_id = if_nametoindex(l->device);
	if (*l->device && !at.in6.sin6_scope_id)
		return -ENODEV;
	fd = open_socket(s->conf, &at);
	if (fd < 0)
		return steal_fd(&fd);
	if (dup3(fd, l->fd, O_CLOEXEC) < 0)
		return -errno;
	l->at = at;
	l->lacks = sock_lacks(l->fd);
	return 0;
}
