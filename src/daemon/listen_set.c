/* SPDX-License-Identifier: MIT */
/*
 * listen_set.c - the listening sockets of the process, by address.
 */
#include "daemon/listen_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/sock.h"

/* Ports tried where one must be free at every address of a rule. */
#define PORT_TRIES_MAX 256

/* Logs which options could not be set that only improve a connection, and what
 * follows: each once in the life of the process. */
static void warn_lacks(unsigned lacks)
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
		{ LISTEN_LACKS_KEEPALIVE,
		  "keepalive unavailable; clients that have vanished are not "
		  "noticed" },
	};
	static unsigned warned;

	lacks &= ~warned;
	warned |= lacks;
	for (size_t i = 0; i < array_size(follows); i++)
		if (lacks & follows[i].what)
			log_warn("%s", follows[i].text);
}

static void warn_capped(const char *name, int requested, int got,
			const char *limit)
{
	if (got < requested)
		log_warn("--%s=%d: the kernel grants %d (%s)", name, requested,
			 got, limit);
}

/*
 * Sets a rule's socket options on a socket of no connection, since it is too
 * late to report an error once there are clients.
 *
 * Return: 0, or -1 and the reason has been logged.
 */
static int try_sockopts(const struct sockopts *opts)
{
	struct sockopts got;
	int err;
	const char *refused = sockopts_try(opts, &got, &err);

	if (refused && !strcmp(refused, "congestion")) {
		log_error("--congestion=%s: %s; see net.ipv4.tcp_%s"
			  "_congestion_control",
			  opts->congestion,
			  err == -ENOENT ? "the kernel does not have it"
					 : strerror(-err),
			  err == -EPERM ? "allowed" : "available");
	} else if (refused) {
		log_error("--%s: the kernel refuses it: %s", refused,
			  strerror(-err));
	} else {
		warn_capped("rcvbuf", opts->rcvbuf, got.rcvbuf,
			    "net.core.rmem_max");
		warn_capped("sndbuf", opts->sndbuf, got.sndbuf,
			    "net.core.wmem_max");
		if (opts->mptcp && !got.mptcp)
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

static struct listen_entry *entry_at(struct list *node)
{
	return container_of(node, struct listen_entry, node);
}

static void close_entry(struct listen_set *set, struct listen_entry *e)
{
	listen_socket_close(&e->socket);
	list_remove(&e->node);
	set->n--;
	free(e);
}

/* Closes the entries behind @last, a node of the set or its head. */
static void close_behind(struct listen_set *set, const struct list *last)
{
	while (set->entries.prev != last)
		close_entry(set, entry_at(set->entries.prev));
}

/* The port of the entry behind @last. */
static uint16_t port_behind(const struct list *last)
{
	return addr_port(&entry_at(last->next)->socket.at);
}

/* Return: 0, or a negative errno. */
static int open_one(struct listen_set *set, struct route *route,
		    const struct addr *at)
{
	struct listen_entry *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	err = listen_socket_open(&e->socket, route, at);
	if (err) {
		free(e);
		return err;
	}
	e->set = set;
	list_append(&set->entries, &e->node);
	set->n++;
	return 0;
}

/*
 * Opens a socket at each address of a route, but for those that this machine
 * does not have, as long as one remains.
 *
 * @port:	to use where the rule leaves it open; 0 leaves it to the kernel
 *
 * Return: 0, or a negative errno, and @at is where it failed.
 */
static int open_all(struct listen_set *set, struct route *route, uint16_t port,
		    struct addr *at)
{
	const struct list *last = set->entries.prev;
	int absent = 0;

	for (unsigned i = 0; i < route->n_listens; i++) {
		int err;

		*at = route->listens[i];
		if (port)
			addr_set_port(at, port);
		/* Port 0: the first choice of the kernel is for all. */
		if (!route->rule->listen.port && set->entries.prev != last)
			addr_set_port(at, port_behind(last));
		err = open_one(set, route, at);
		if (is_absent(err))
			absent = err;
		else if (err)
			return err;
	}
	return set->entries.prev != last ? 0 : absent;
}

/* Warns of addresses that a name has and this machine does not; entries of the
 * others are behind @last. */
static void warn_left_out(const struct listen_set *set,
			  const struct route *route, const struct list *last)
{
	uint16_t port = port_behind(last);
	char text[ADDR_STRLEN];

	for (unsigned i = 0; i < route->n_listens; i++) {
		struct addr at = route->listens[i];

		addr_set_port(&at, port);
		if (last->next != &set->entries &&
		    addr_equal(&at, &entry_at(last->next)->socket.at))
			last = last->next;
		else if (!route->any)
			log_warn("%s%s: %s left out: this machine does not "
				 "have the address",
				 route->rule->where, route->rule->listen.host,
				 addr_format(&at, text));
	}
}

static void log_failed(const struct route *route, const struct addr *at,
		       int err, unsigned tries)
{
	char text[ADDR_STRLEN], note[48] = "";

	if (tries > 1)
		snprintf(note, sizeof(note), " (%u other ports tried)",
			 tries - 1);
	if (route->any && is_absent(err))
		log_error("%sno network protocol to listen with",
			  route->rule->where);
	else
		log_error("%scannot listen at %s: %s%s", route->rule->where,
			  addr_format(at, text), strerror(-err), note);
}

/*
 * A port that is free at the first address may be in use at the next: then
 * another is tried. The kernel chooses an odd one as long as there is one (it
 * keeps the others for connect(2)), so its neighbour is tried too.
 */
static int open_route(struct listen_set *set, struct route *route)
{
	const struct list *last = set->entries.prev;
	unsigned tries = 0;
	bool may_choose = !route->rule->listen.port && route->n_listens > 1;
	uint16_t port = 0, chosen;
	struct addr at;
	int err;

	do {
		err = open_all(set, route, port, &at);
		tries++;
		if (!err)
			break;
		chosen = set->entries.prev != last ? port_behind(last) : 0;
		port = port ? 0 : chosen ^ 1;
		close_behind(set, last);
	} while (err == -EADDRINUSE && may_choose && tries < PORT_TRIES_MAX);
	if (err) {
		log_failed(route, &at, err, tries);
		return -1;
	}
	warn_left_out(set, route, last);
	return 0;
}

void listen_set_init(struct listen_set *set)
{
	*set = (struct listen_set){ 0 };
	list_init(&set->entries);
}

/**
 * listen_set_open() - listen at the addresses of all routes
 *
 * Return: 0, or -1 and the reason has been logged.
 */
int listen_set_open(struct listen_set *set, const struct routes *routes)
{
	const struct sockopts *tried = NULL;

	for (unsigned i = 0; i < routes->n; i++) {
		struct route *route = routes->at[i];
		const struct sockopts *opts = &route->rule->options.sockopts;

		if (!tried || memcmp(tried, opts, sizeof(*opts)))
			if (try_sockopts(opts))
				return -1;
		tried = opts;
		if (open_route(set, route))
			return -1;
	}
	return 0;
}

/* Once no acceptor is left. */
void listen_set_close(struct listen_set *set)
{
	close_behind(set, &set->entries);
}

/* Return: the entry at this very address, or NULL. */
struct listen_entry *listen_set_find(const struct listen_set *set,
				     const struct addr *at)
{
	list_each (node, &set->entries)
		if (addr_equal(&entry_at(node)->socket.at, at))
			return entry_at(node);
	return NULL;
}

static struct listen_entry *entry_of(struct request *r)
{
	return container_of(r, struct listen_entry, acceptor.request);
}

static void started(struct request *r)
{
	struct listen_entry *e = entry_of(r);
	char text[ADDR_STRLEN];

	e->set->pending--;
	if (!r->result) {
		e->accepting = true;
		return;
	}
	log_error("%s: %s", addr_format(&e->socket.at, text),
		  strerror(-r->result));
	e->set->failed = true;
}

static void stopped(struct request *r)
{
	entry_of(r)->set->pending--;
}

/* Has workers accept, in turn; done when @pending is 0. */
void listen_set_start(struct listen_set *set, struct workers *workers)
{
	list_each (node, &set->entries) {
		struct listen_entry *e = entry_at(node);
		struct worker *w = &workers->at[++set->next % workers->n];

		warn_lacks(e->socket.lacks);
		set->pending++;
		acceptor_add(&e->acceptor, w, &e->socket, workers->inbox,
			     started);
	}
}

/* Has no worker accept any more; done when @pending is 0. */
void listen_set_stop(struct listen_set *set)
{
	list_each (node, &set->entries) {
		struct listen_entry *e = entry_at(node);

		if (!e->accepting)
			continue;
		e->accepting = false;
		set->pending++;
		acceptor_remove(&e->acceptor, stopped);
	}
}
