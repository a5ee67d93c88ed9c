/* SPDX-License-Identifier: MIT */
/*
 * listening.c - the sockets that listen, before a worker watches them
 *
 * They are the server's and not the workers': closing one of them resets the
 * clients in its queue (K23), so they are closed once, at the end.
 */
#include "daemon/listening.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "daemon/listener.h"
#include "net/sock.h"

/* As long as the kernel lets us: a burst of clients waits there, not lost. */
#define BACKLOG 65535

/* Listens; what is set on the socket is inherited by those it accepts. */
static int open_socket(const struct conf *conf, const struct addr *at)
{
	const struct tuning *tuning = &conf->tuning;
	cleanup(close_fdp) int fd = sock_listen(at, BACKLOG, tuning);
	int err = 0;

	if (fd < 0)
		return steal_fd(&fd);
	if (tuning->keepalive.idle_s)
		err = tune_keepalive(fd, &tuning->keepalive);
	return err ? err : steal_fd(&fd);
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
	const struct tuning *t = &conf->tuning;
	struct tuning got;
	int err;
	const char *refused = tune_try(t, &got, &err);

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
	}
	return refused ? -1 : 0;
}

/* Return: 0, or -1 and said why; an address may have been left out. */
static int open_one(struct server *s, const struct rule *rule,
		    const struct addr *at)
{
	char text[ADDR_STRLEN];
	struct listening *l;
	socklen_t len = sizeof(l->at);
	int fd = open_socket(s->conf, at), err;

	/* "*" is every family that this machine has. */
	if (rule->any && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL))
		return 0;
	if (fd < 0) {
		log_error("%s%scannot listen at %s: %s", rule->where,
			  *rule->where ? ": " : "", addr_format(at, text),
			  strerror(-fd));
		return -1;
	}
	l = &s->open[s->n_open++];
	*l = (struct listening){ .fd = fd, .at = *at, .rule = rule };
	(void)getsockname(fd, &l->at.sa, &len); /* for port 0 */
	err = listener_new(&s->workers[s->n_open % s->n_workers], rule, fd);
	if (err) {
		log_error("%s: %s", addr_format(at, text), strerror(-err));
		return -1;
	}
	return 0;
}

static int open_rule(struct server *s, const struct rule *rule)
{
	unsigned first = s->n_open;

	for (unsigned i = 0; i < rule->n_listens; i++) {
		struct addr at = rule->listens[i];

		/* Port 0: what the kernel chose first is for all. */
		if (!rule->listen.port && s->n_open > first)
			addr_set_port(&at, addr_port(&s->open[first].at));
		if (open_one(s, rule, &at))
			return -1;
	}
	if (s->n_open > first)
		return 0;
	log_error("%s%sno network protocol to listen with", rule->where,
		  *rule->where ? ": " : "");
	return -1;
}

/**
 * listening_open() - listen for every rule, and have workers accept
 *
 * Return: 0, or -1 and the reason has been logged; then listening_close()
 *	still has to follow.
 */
int listening_open(struct server *s)
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
void listening_close(struct server *s)
{
	while (s->n_open)
		close_fd(s->open[--s->n_open].fd);
}
