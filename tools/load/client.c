/* SPDX-License-Identifier: MIT */
/*
 * client.c - the loop of the subcommands that connect.
 */
#include "client.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BATCH 64

int client_init(struct client *c, const struct options *o)
{
	*c = (struct client){
		.o = o,
		.epfd = epoll_create1(EPOLL_CLOEXEC),
		.deadline_ns = now_ns() + o->timeout_ns,
	};
	return c->epfd < 0 ? -errno : 0;
}

void client_fini(struct client *c)
{
	close(c->epfd);
}

void client_fail(struct client *c, unsigned stream, const char *what, int err)
{
	/* A wrong byte has been explained by the one who saw it. */
	if (!c->failed && err != -EBADMSG)
		complain("%s, stream %u: %s: %s", c->o->where, stream, what,
			 err ? strerror(-err) : "the server has said FIN");
	c->failed = true;
}

int client_dial(struct client *c, uint32_t events, void *conn)
{
	struct epoll_event ev = { .events = events, .data.ptr = conn };
	int fd = sock_dial(&c->o->address), err;

	if (fd >= 0 && !epoll_ctl(c->epfd, EPOLL_CTL_ADD, fd, &ev)) {
		c->open++;
		return fd;
	}
	err = fd < 0 ? -fd : errno;
	if (fd >= 0)
		close(fd);
	complain("cannot connect to %s: %s", c->o->where, strerror(err));
	c->failed = true;
	return -1;
}

void client_watch(struct client *c, int fd, uint32_t events, void *conn)
{
	struct epoll_event ev = { .events = events, .data.ptr = conn };

	epoll_ctl(c->epfd, EPOLL_CTL_MOD, fd, &ev);
}

void client_hangup(struct client *c, int fd)
{
	close(fd);
	c->open--;
}

/* What time does: the end of the measuring, and the end of our patience. */
static void client_tick(struct client *c)
{
	uint64_t now = now_ns();

	if (now >= c->deadline_ns) {
		complain("%s: not done after %g seconds, and %u of the "
			 "connections still open",
			 c->o->where, c->o->timeout_ns / 1e9, c->open);
		c->failed = true;
	} else if (c->stop_ns && now >= c->stop_ns && !c->stopped) {
		c->stopped = true;
		if (c->stop)
			c->stop(c);
	}
}

int client_run(struct client *c)
{
	struct epoll_event ev[BATCH];
	uint64_t until;
	int i, n;

	while (c->open && !c->failed) {
		until = c->deadline_ns;
		if (c->stop_ns && !c->stopped && c->stop_ns < until)
			until = c->stop_ns;
		n = epoll_wait(c->epfd, ev, BATCH, wait_ms(until));
		for (i = 0; i < n && !c->failed; i++)
			c->step(c, ev[i].data.ptr);
		client_tick(c);
	}
	return c->failed ? -1 : 0;
}
