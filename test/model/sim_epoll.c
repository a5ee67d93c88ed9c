/* SPDX-License-Identifier: MIT */
/*
 * sim_epoll.c - descriptors, the epoll set, the clock
 *
 * DOC: Theory of operation
 *
 * A descriptor that is watched gets into the ready list by an edge, never for
 * being ready. epoll_wait(2) asks it what it is now, and takes it off the list
 * unless it is level-triggered, as only eventfd and timerfd are here.
 *
 * What an edge is differs: Linux makes one of every arrival, though the bytes
 * before were not read; epoll(7) only promises one where the answer of poll
 * gains a bit. The second, which is harder on the caller, is the default.
 *
 * Time stands still unless sim_advance() moves it.
 */
#include "model/sim.h"

#include <errno.h>
#include <string.h>

struct sim sim;

void sim_reset(const struct sim_rules *rules)
{
	memset(sim.file, 0, sim.files * sizeof(sim.file[0]));
	memset(sim.sock, 0, sim.socks * sizeof(sim.sock[0]));
	memset(sim.pipe, 0, sizeof(sim.pipe));
	memset(sim.total, 0, sizeof(sim.total));
	sim.count = (struct sim_count){ 0 };
	sim.on = sim.in_turn = sim.fault_fired = false;
	sim.files = sim.open = sim.socks = sim.faultable = 0;
	sim.now_ns = 1000000000;
	sim.turn = 1;
	sim.hungry_turn = sim.discarded = 0;
	sim.rules = *rules;
	list_init(&sim.ready);
	trace_reset();
}

struct sim_file *sim_open(enum sim_kind kind)
{
	struct sim_file *f = &sim.file[sim.files];

	if (sim.files == SIM_FDS)
		sim_fail("the simulation has run out of descriptors");
	*f = (struct sim_file){ .kind = kind, .fd = SIM_FD + (int)sim.files };
	list_init(&f->ready);
	sim.files++;
	sim.open++;
	return f;
}

/* The open file behind @fd, NULL if the real kernel is meant. */
struct sim_file *sim_file(int fd)
{
	struct sim_file *f;

	if (fd < SIM_FD)
		return NULL;
	f = &sim.file[fd - SIM_FD];
	if (fd - SIM_FD >= (int)sim.files || f->kind == SIM_CLOSED)
		sim_fail("a call on descriptor %d, which is closed", fd);
	return f;
}

uint32_t sim_poll(struct sim_file *f)
{
	switch (f->kind) {
	case SIM_SOCK:
		return tcp_poll(f->sock);
	case SIM_EVENT:
		return f->n ? EPOLLIN | EPOLLOUT : EPOLLOUT;
	case SIM_PIPE_IN:
		return f->pipe->n < f->pipe->room ? EPOLLOUT : 0;
	case SIM_TIMER:
		return f->n && f->n <= sim.now_ns ? EPOLLIN : 0;
	default:
		return 0;
	}
}

static void queue(struct sim_file *f)
{
	if (list_empty(&f->ready))
		list_append(&sim.ready, &f->ready);
}

/* Something happened; @key says what, 0 anything. */
void sim_wake(struct sim_file *f, uint32_t key)
{
	uint32_t mask = sim_poll(f), gained = mask & ~f->mask;

	f->mask = mask;
	if (!f->events)
		return;
	if (key && !(key & f->events))
		return;
	if (sim.rules.eager || gained)
		queue(f);
}

/* A call has taken something: what poll no longer says can be gained anew. */
void sim_settle(struct sim_file *f)
{
	f->mask &= sim_poll(f);
}

/* What poll does besides: without room, the next room makes an edge. */
static uint32_t ask(struct sim_file *f)
{
	uint32_t mask = sim_poll(f);

	if (f->kind == SIM_SOCK && !(mask & EPOLLOUT))
		f->sock->nospace = true;
	return mask & f->events;
}

void sim_unwatch(struct sim_file *f)
{
	list_remove(&f->ready);
	f->events = 0;
}

int sim_epoll_ctl(int op, struct sim_file *f, const struct epoll_event *ev)
{
	if (op == EPOLL_CTL_DEL) {
		if (!f->events)
			return -ENOENT;
		sim_unwatch(f);
		return 0;
	}
	if (op != EPOLL_CTL_ADD)
		sim_fail("a watch was modified");
	if (f->events)
		return -EEXIST;
	f->events = ev->events | EPOLLERR | EPOLLHUP;
	f->ptr = ev->data.ptr;
	if (f->kind == SIM_SOCK && !(f->events & EPOLLET))
		sim_fail("a socket is watched without EPOLLET");
	f->mask = sim_poll(f);
	if (ask(f))
		queue(f);
	return 0;
}

/* Remembers that EPOLLPRI has been told. */
static void told(struct sim_file *f, uint32_t mask)
{
	struct sim_mark *m;

	if (f->kind != SIM_SOCK || !(mask & EPOLLPRI))
		return;
	m = tcp_mark(f->sock, f->sock->urg_at);
	if (m)
		m->told = true;
}

int sim_epoll_wait(struct epoll_event *ev, int max)
{
	struct list level;
	int n = 0;

	list_init(&level);
	while (n < max && !list_empty(&sim.ready)) {
		struct sim_file *f =
			(struct sim_file *)((char *)sim.ready.next -
					    offsetof(struct sim_file, ready));
		uint32_t mask = ask(f);

		list_remove(&f->ready);
		if (!mask)
			continue;
		if (!(f->events & EPOLLET))
			list_append(&level, &f->ready);
		told(f, mask);
		ev[n].events = mask;
		ev[n].data.ptr = f->ptr;
		trace("event", f->sock ? (int)f->sock->id : -1, mask, 0);
		n++;
	}
	while (!list_empty(&level)) {
		struct list *node = level.next;

		list_remove(node);
		list_append(&sim.ready, node);
	}
	sim.count.events += (unsigned)n;
	return n;
}

/* read(2) of an eventfd or a timerfd. */
ssize_t sim_counter_read(struct sim_file *f, uint64_t *n)
{
	if (!(sim_poll(f) & EPOLLIN))
		return -EAGAIN;
	*n = f->kind == SIM_TIMER ? 1 : f->n;
	f->n = 0;
	sim_settle(f);
	return sizeof(*n);
}

/* Whether epoll_wait(2) would have something to say. */
bool sim_busy(void)
{
	list_each (node, &sim.ready) {
		struct sim_file *f =
			(struct sim_file *)((char *)node -
					    offsetof(struct sim_file, ready));

		if (sim_poll(f) & f->events)
			return true;
	}
	return false;
}

/* When the timerfd goes off, 0 if it does not. */
uint64_t sim_alarm(void)
{
	for (unsigned i = 0; i < sim.files; i++)
		if (sim.file[i].kind == SIM_TIMER)
			return sim.file[i].n;
	return 0;
}

void sim_advance(uint64_t ns)
{
	sim.now_ns += ns;
	for (unsigned i = 0; i < sim.files; i++)
		if (sim.file[i].kind == SIM_TIMER)
			sim_wake(&sim.file[i], EPOLLIN);
}
