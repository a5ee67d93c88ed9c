/* SPDX-License-Identifier: MIT */
/*
 * end.c - one end of a connection.
 */
#include "load/end.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load/pair.h"
#include "support/stamp.h"

#define PIECE (128 << 10) /* bytes a call */
#define SHARE (512 << 10) /* bytes a turn, so that others have theirs */

struct load load;

static char piece[PIECE];

static struct part *part_of(const struct end *e)
{
	return &e->pair->plan.part[e->which];
}

static struct part *other_part(const struct end *e)
{
	return &e->pair->plan.part[!e->which];
}

void end_leave(struct end *e, enum gone how)
{
	struct linger now = { .l_onoff = 1 };

	if (how == GONE_RESET)
		setsockopt(e->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(e->fd);
	e->fd = -1;
	e->gone = how;
}

/* Up to which byte it may say something now. */
static uint64_t may_say(const struct end *e)
{
	const struct plan *p = &e->pair->plan;
	const struct part *part = part_of(e);
	uint64_t most = part->total, rounds;

	if (load.held)
		return 0;
	if (part->leave_at < most)
		most = part->leave_at;
	switch (p->kind) {
	case KIND_PINGPONG:
		rounds = e->got / p->message + (e->which == 0);
		return rounds * p->message < most ? rounds * p->message : most;
	case KIND_ANSWER:
		return e->which == 1 && e->heard != HEARD_FIN ? 0 : most;
	case KIND_SPEECH:
		return e->which == 0 && e->heard != HEARD_FIN ? 0 : most;
	default:
		return most;
	}
}

/* Whether it has said all that it will. */
static bool has_said_all(const struct end *e)
{
	const struct part *part = part_of(e);

	if (load.held || (!e->which && e->hello < HELLO))
		return false;
	if (e->sent == part->total || e->sent == part->leave_at)
		return true;
	/* Nobody is left to play with. */
	return e->pair->plan.kind == KIND_PINGPONG && e->heard == HEARD_FIN &&
	       e->sent >= may_say(e);
}

/* Takes note of a failed call. Return: false, there is nothing to go on with. */
static bool failed(struct end *e, bool reading)
{
	if (errno == EAGAIN) {
		*(reading ? &e->readable : &e->writable) = false;
		return false;
	}
	if (errno == EINTR)
		return true;
	e->writable = false;
	if (reading)
		e->heard = HEARD_RST;
	else
		e->failed = e->readable = true;
	return false;
}

static bool say_hello(struct end *e)
{
	ssize_t n = send(e->fd, e->hello_data + e->hello, HELLO - e->hello,
			 MSG_NOSIGNAL);

	if (n < 0)
		return failed(e, false);
	e->hello += (unsigned)n;
	return true;
}

/* One write. Return: whether to try another. */
static bool say(struct end *e)
{
	uint64_t most = may_say(e), urgent = part_of(e)->urgent_at;
	bool now_urgent = e->sent == urgent;
	size_t n;
	ssize_t sent;

	if (!e->writable || e->said_fin || e->failed)
		return false;
	if (!e->which && e->hello < HELLO)
		return say_hello(e);
	if (e->sent >= most)
		return false;
	if (e->sent < urgent && urgent < most)
		most = urgent;
	n = now_urgent ? 1 : most - e->sent < PIECE ? most - e->sent : PIECE;
	stamp_fill(piece, pair_stream(e->pair, e->which), e->sent, n);
	sent = send(e->fd, piece, n, MSG_NOSIGNAL | (now_urgent ? MSG_OOB : 0));
	if (sent < 0)
		return failed(e, false);
	load.urgent_sent += now_urgent;
	e->sent += (uint64_t)sent;
	return true;
}

static int ask(int fd, unsigned long what)
{
	int n = 0;

	return ioctl(fd, what, &n) ? -1 : n;
}

/*
 * Looks for the mark where the other's urgent byte is. It is known before the
 * byte can be read; so it is looked for once the byte can be.
 */
static void look_for_mark(struct end *e)
{
	bool marked;

	if (ask(e->fd, FIONREAD) <= 0)
		return; /* an end, or nothing yet: recv(2) will tell */
	marked = ask(e->fd, SIOCATMARK) == 1;
	if (marked && !e->mark_seen)
		load.urgent_seen++;
	if (!marked && !e->mark_missed)
		load.urgent_missed++;
	e->mark_seen = marked;
	e->mark_missed = !marked;
}

static void check(struct end *e, size_t n)
{
	unsigned stream = pair_stream(e->pair, !e->which);

	if (e->wrong || stamp_check(piece, stream, e->got, n) < 0)
		return;
	e->wrong = malloc(STAMP_WHY);
	if (e->wrong)
		stamp_explain(e->wrong, STAMP_WHY, piece, stream, e->got, n);
}

static void maybe_stall(struct end *e)
{
	const struct part *part = part_of(e);

	if (e->stalled || e->got < part->stall_at)
		return;
	e->stalled = true;
	e->until_ms = load.now_ms + part->stall_ms;
}

/* One read. Return: whether to try another. */
static bool hear(struct end *e)
{
	uint64_t urgent = other_part(e)->urgent_at;
	size_t room = PIECE;
	ssize_t n;

	if (!e->readable || e->heard || e->until_ms)
		return false;
	if (e->got == urgent)
		look_for_mark(e);
	else if (e->got < urgent && urgent - e->got < room)
		room = urgent - e->got;
	n = recv(e->fd, piece, room, 0);
	if (n < 0)
		return failed(e, true);
	if (n == 0) {
		e->heard = e->failed ? HEARD_RST : HEARD_FIN;
		return true;
	}
	check(e, (size_t)n);
	e->got += (uint64_t)n;
	maybe_stall(e);
	return true;
}

/* Leaves if it is time to. */
static void leave(struct end *e)
{
	enum leave how = part_of(e)->leave;

	if (e->heard == HEARD_RST || (e->heard && e->failed)) {
		end_leave(e, GONE_TOLD);
		return;
	}
	if (!has_said_all(e))
		return;
	if (how != LEAVE_FIN) {
		end_leave(e, how == LEAVE_RESET ? GONE_RESET : GONE_EARLY);
		return;
	}
	if (!e->said_fin && !e->failed) {
		if (shutdown(e->fd, SHUT_WR)) /* ENOTCONN: a RST */
			e->failed = e->readable = true;
		else
			e->said_fin = true;
	}
	if (e->said_fin && e->heard)
		end_leave(e, GONE_CLEAN);
}

bool end_run(struct end *e)
{
	uint64_t share = e->sent + e->got + SHARE;
	bool more = true;

	while (more && e->sent + e->got < share) {
		more = say(e);
		more |= hear(e);
	}
	leave(e);
	return more && e->gone == GONE_NOT;
}
