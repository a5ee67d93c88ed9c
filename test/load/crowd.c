/* SPDX-License-Identifier: MIT */
/*
 * crowd.c - many connections at once
 *
 * Edge triggered: an end is put into the queue when it may go on, and stays
 * there until it cannot. Whoever is reset early leaves behind a server that may
 * never come, or late; so a connection is over only some time after that.
 */
#include "load/crowd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH	 256
#define TICK_MS	 10
#define GRACE_MS 4000
#define TOLD	 20 /* complaints that are printed */
#define MAGIC	 0x6f6c6c65u

static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void enqueue(struct crowd *c, struct end *e)
{
	if (e->queued)
		return;
	e->queued = true;
	e->next = NULL;
	*c->last = e;
	c->last = &e->next;
}

static struct end *dequeue(struct crowd *c)
{
	struct end *e = c->first;

	c->first = e->next;
	if (!c->first)
		c->last = &c->first;
	e->queued = false;
	return e;
}

static int watch(struct crowd *c, int fd, uint32_t events, void *ptr)
{
	struct epoll_event ev = { .events = events, .data.ptr = ptr };

	return epoll_ctl(c->epfd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static struct end *end_new(struct crowd *c, int fd, int which)
{
	struct end *e = calloc(1, sizeof(*e));

	if (!e || watch(c, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, e)) {
		perror("no room for an end");
		exit(EXIT_FAILURE);
	}
	e->fd = fd;
	e->which = which;
	return e;
}

int crowd_open(struct crowd *c, unsigned patience_ms)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int one = 1;

	*c = (struct crowd){ .last = &c->first, .patience_ms = patience_ms };
	load.now_ms = clock_ms();
	c->epfd = epoll_create1(EPOLL_CLOEXEC);
	c->listener =
		socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->epfd < 0 || c->listener < 0)
		return -errno;
	setsockopt(c->listener, SOL_SOCKET, SO_OOBINLINE, &one, sizeof(one));
	if (bind(c->listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(c->listener, 65535))
		return -errno;
	return watch(c, c->listener, EPOLLIN, NULL);
}

uint16_t crowd_port(const struct crowd *c)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	return getsockname(c->listener, (struct sockaddr *)&at, &len)
		       ? 0
		       : ntohs(at.sin_port);
}

int crowd_connect(struct crowd *c, const struct sockaddr_in *to)
{
	struct pair **slot = &c->pairs[c->serial % SLOTS], *p;
	uint32_t hello[2] = { MAGIC, c->serial };
	int one = 1, fd;

	if (*slot)
		return -EBUSY;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &one, sizeof(one));
	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) &&
	    errno != EINPROGRESS) {
		int err = -errno;

		close(fd);
		return err;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		exit(EXIT_FAILURE);
	p->serial = c->serial++;
	p->born_ms = load.now_ms;
	plan_make(&p->plan, load.sort, load.size, load.seed, p->serial);
	p->ends[0] = end_new(c, fd, 0);
	p->ends[0]->pair = p;
	p->ends[0]->connecting = true;
	memcpy(p->ends[0]->hello_data, hello, HELLO);
	*slot = p;
	c->live++;
	return 0;
}

static void complain(struct crowd *c, const struct pair *p, const char *why)
{
	char text[900];

	if (c->wrong++ >= TOLD)
		return;
	pair_describe(p, text, sizeof(text));
	fprintf(stderr, "%s\n    %s\n", why, text);
}

static void end_free(struct crowd *c, struct end *e)
{
	if (!e)
		return;
	c->said += e->sent + (e->which ? 0 : e->hello);
	c->heard += e->got + (e->which ? e->hello : 0);
	c->resets_heard += e->heard == HEARD_RST;
	c->fins_heard += e->heard == HEARD_FIN;
	load.urgent_missed += e->mark_missed && e->mark_seen;
	free(e->wrong);
	free(e);
}

/* A connection is over. */
static void pair_end(struct crowd *c, struct pair *p)
{
	char room[300];
	const char *why = pair_judge(p, room, sizeof(room));

	if (why)
		complain(c, p, why);
	c->count[p->plan.kind]++;
	c->orderly += p->ends[1] && plan_is_orderly(&p->plan);
	c->unserved += !p->ends[1] && p->ends[0]->gone == GONE_TOLD;
	end_free(c, p->ends[0]);
	end_free(c, p->ends[1]);
	c->pairs[p->serial % SLOTS] = NULL;
	c->live--;
	free(p);
}

static bool is_over(const struct pair *p)
{
	const struct end *client = p->ends[0], *server = p->ends[1];

	if (client->queued || !client->gone)
		return false;
	if (server)
		return server->gone && !server->queued;
	return p->plan.kind == KIND_SILENT || load.now_ms - p->left_ms > GRACE_MS;
}

/* An accepted end has left without having heard who it is. */
static void guest_end(struct crowd *c, struct end *e)
{
	if (e->fd >= 0)
		close(e->fd);
	c->guests--;
	c->strangers++;
	c->heard += e->hello;
	free(e);
}

/* It has heard all of the hello. Return: whether it is somebody. */
static bool introduce(struct crowd *c, struct end *e)
{
	uint32_t hello[2];
	struct pair *p;

	memcpy(hello, e->hello_data, HELLO);
	p = c->pairs[hello[1] % SLOTS];
	if (hello[0] != MAGIC) {
		fprintf(stderr,
			"these are not the first bytes of anybody: %08x %08x\n",
			hello[0], hello[1]);
		c->wrong++;
		return false;
	}
	if (!p || p->serial != hello[1] || p->ends[1]) {
		c->late++;
		return false;
	}
	p->ends[1] = e;
	e->pair = p;
	c->guests--;
	c->served++;
	return true;
}

/* Return: whether it goes on as an end of a pair. */
static bool hear_hello(struct crowd *c, struct end *e)
{
	while (e->hello < HELLO) {
		ssize_t n = recv(e->fd, e->hello_data + e->hello,
				 HELLO - e->hello, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			e->readable = false;
			return false;
		}
		if (n <= 0) {
			guest_end(c, e);
			return false;
		}
		e->hello += (unsigned)n;
	}
	if (introduce(c, e))
		return true;
	guest_end(c, e);
	return false;
}

/* A connect is over, well or not: the first call will tell. */
static void connected(struct end *e)
{
	e->connecting = false;
	if (e->pair->plan.kind == KIND_SILENT)
		end_leave(e, e->pair->serial & 1 ? GONE_RESET : GONE_EARLY);
}

static void run(struct crowd *c, struct end *e)
{
	if (!e->pair && !hear_hello(c, e))
		return;
	if (e->connecting && (e->writable || e->readable))
		connected(e);
	if (!e->gone && !e->connecting && end_run(e))
		enqueue(c, e);
	if (e->gone && !e->which && !e->pair->left_ms)
		e->pair->left_ms = load.now_ms;
	if (is_over(e->pair))
		pair_end(c, e->pair);
}

static void accept_all(struct crowd *c)
{
	for (;;) {
		int fd = accept4(c->listener, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		end_new(c, fd, 1);
		c->guests++;
	}
}

static void happen(struct crowd *c, const struct epoll_event *ev)
{
	struct end *e = ev->data.ptr;

	if (!e) {
		accept_all(c);
		return;
	}
	if (ev->events & ~(uint32_t)EPOLLOUT)
		e->readable = true;
	if (ev->events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
		e->writable = true;
	if (ev->events & (EPOLLERR | EPOLLHUP))
		e->until_ms = 0; /* no use in waiting */
	enqueue(c, e);
}

/* What time alone brings. */
static void tick(struct crowd *c)
{
	c->tick_ms = load.now_ms;
	for (unsigned i = 0; i < SLOTS; i++) {
		struct pair *p = c->pairs[i];

		if (!p)
			continue;
		for (int k = 0; k < 2; k++) {
			struct end *e = p->ends[k];

			if (e && e->until_ms && e->until_ms <= load.now_ms) {
				e->until_ms = 0;
				enqueue(c, e);
			}
		}
		if (load.now_ms - p->born_ms > c->patience_ms && !is_over(p)) {
			complain(c, p, "it is stuck");
			p->born_ms = load.now_ms; /* once is enough */
		}
		if (is_over(p))
			pair_end(c, p);
	}
}

void crowd_release(struct crowd *c)
{
	load.held = false;
	for (unsigned i = 0; i < SLOTS; i++)
		for (int k = 0; c->pairs[i] && k < 2; k++)
			if (c->pairs[i]->ends[k])
				enqueue(c, c->pairs[i]->ends[k]);
}

void crowd_turn(struct crowd *c)
{
	struct epoll_event ev[BATCH];
	unsigned left = BATCH;
	int n = epoll_wait(c->epfd, ev, BATCH, c->first ? 0 : TICK_MS);

	load.now_ms = clock_ms();
	for (int i = 0; i < n; i++)
		happen(c, &ev[i]);
	while (c->first && left--)
		run(c, dequeue(c));
	if (load.now_ms - c->tick_ms >= TICK_MS)
		tick(c);
}
