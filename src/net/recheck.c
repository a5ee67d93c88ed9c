/* SPDX-License-Identifier: MIT */
/*
 * doubt.c - sockets that seem to be empty, without a proof
 *
 * DOC: Theory of operation
 *
 * Edge triggered, a socket has to be read until it says EAGAIN, or a rest may
 * lie there and nothing tells of it. A read that came short has most often taken
 * all there was, and then that last call is for nothing: with small messages,
 * one call in three. So the owner may take it for empty and say so here. When
 * more arrives, its edge settles the matter. If none has come when the thread
 * would sleep, or after some turns without a sleep, poll(2) is asked about all
 * that are in doubt, at once.
 *
 * Where one message at a time comes and goes that is as many calls as before. So
 * when it is often asked, it begins to tick: nobody is asked before a sleep any
 * more, but every 8 ms, and only about those that were in doubt at the last tick:
 * most have been settled since. (To be woken by a timer can cost as much as a few
 * messages.) When there is little left to doubt the ticking stops. At rest nothing
 * ticks and nothing is asked.
 *
 * An edge that settles a doubt is no proof that there was no rest before it, and
 * if it comes often enough the doubt is never old enough to be asked about. So
 * now and then the owner has to read until EAGAIN all the same.
 */
#include "net/recheck.h"

#include <poll.h>

#include "base/util.h"
#include "net/loop.h"

/* So many are asked about in one call. */
#define ASK_BATCH 64

/* Turns in which the thread did not sleep, and nobody was asked. */
#define TURNS 8

/* It begins to tick when so many were asked about within so long. */
#define OFTEN	 64
#define OFTEN_MS 8

/* A tick, and so many doubts in one are too few to go on. */
#define TICK_MS 8
#define FEW	8

/* So often a socket may be taken for empty without a proof, if the last one is
 * older than a tick. */
#define UNPROVEN 4

void recheck_init(struct recheck *ds)
{
	list_init(&ds->fresh);
	list_init(&ds->old);
}

/**
 * recheck_add() - take a socket for empty, until an edge or poll(2) says otherwise
 * @faint:	it can hardly be wrong, so nothing has to be proven
 *
 * Return: whether it is taken so; if not, it must be read until EAGAIN.
 */
bool recheck_add(struct recheck *ds, struct watch *w, bool faint)
{
	if (!faint) {
		if (w->unproven >= UNPROVEN &&
		    w->proven_at != (uint16_t)counter_read(&ds->ticks))
			return false;
		if (w->unproven < UNPROVEN)
			w->unproven++;
	}
	watch_clear(w, LOOP_READABLE);
	list_remove(&w->recheck);
	list_append(&ds->fresh, &w->recheck);
	counter_add(&ds->added, 1);
	return true;
}

/* @w has just been found empty. */
void recheck_confirmed(struct recheck *ds, struct watch *w)
{
	w->unproven = 0;
	w->proven_at = (uint16_t)counter_read(&ds->ticks);
}

/* Asks no more about @w, which is readable, or will be closed. */
void recheck_cancel(struct watch *w)
{
	list_remove(&w->recheck);
}

/* Takes up to ASK_BATCH out of doubt. Return: how many. */
static nfds_t take_some(struct list *list, struct pollfd *p, struct watch **w)
{
	nfds_t n = 0;

	for (; n < ASK_BATCH && !list_empty(list); n++) {
		w[n] = container_of(list->next, struct watch, recheck);
		p[n] = (struct pollfd){
			.fd = w[n]->fd,
			.events = POLLIN | POLLPRI | POLLRDHUP,
		};
		list_remove(&w[n]->recheck);
	}
	return n;
}

/*
 * Settles these @doubts: what has something to read is reported, as if by an
 * edge. Return: whether there was any such.
 */
static bool ask(struct recheck *ds, struct list *list)
{
	struct pollfd p[ASK_BATCH];
	struct watch *w[ASK_BATCH];
	bool any = false;

	while (!list_empty(list)) {
		nfds_t n = take_some(list, p, w);
		bool failed = poll(p, n, 0) < 0; /* no memory: better read */

		counter_add(&ds->polled, n);
		for (nfds_t i = 0; i < n; i++) {
			uint32_t ready = failed ? POLLIN : (uint32_t)p[i].revents;

			if (!ready) {
				recheck_confirmed(ds, w[i]);
				continue;
			}
			counter_add(&ds->readable, 1);
			watch_report(w[i], ready | WATCH_RECHECKED);
			if (failed) /* nobody has told of urgent data */
				watch_clear(w[i], WATCH_UNREAD);
			any = true;
		}
	}
	return any;
}

static void tick(struct timer *t);

/* Return: whether it will. If there is no memory for it, it need not. */
static bool tick_later(struct recheck *ds, uint64_t now)
{
	struct loop *loop = container_of(ds, struct loop, recheck);

	ds->added_before = counter_read(&ds->added);
	return !loop_timer(loop, &ds->tick, now + TICK_MS * NS_PER_MS, tick);
}

static void tick(struct timer *t)
{
	struct recheck *ds = container_of(t, struct recheck, tick);
	bool few = counter_read(&ds->added) - ds->added_before < FEW;

	counter_add(&ds->ticks, 1);
	ask(ds, &ds->old);
	list_take(&ds->old, &ds->fresh);
	if (few || !tick_later(ds, now_ns()))
		ask(ds, &ds->old);
}

/* Begins to tick, if it has come to that. */
static void look_at_clock(struct recheck *ds)
{
	uint64_t now, asked = counter_read(&ds->polled);

	if (asked - ds->polled_before < OFTEN)
		return;
	now = now_ns();
	if (now - ds->since_ns < OFTEN_MS * NS_PER_MS)
		tick_later(ds, now);
	ds->polled_before = asked;
	ds->since_ns = now;
}

/**
 * recheck_turn() - see to it that no doubt lasts
 * @sleeps:	the thread would now sleep, or others will decide when it wakes
 *
 * Once a turn, between batches.
 *
 * Return: whether something was reported, as if by an edge.
 */
bool recheck_turn(struct recheck *ds, bool sleeps)
{
	bool any;

	if (list_empty(&ds->fresh) || timer_is_set(&ds->tick))
		return false;
	if (!sleeps && ++ds->turns < TURNS)
		return false;
	ds->turns = 0;
	any = ask(ds, &ds->fresh);
	look_at_clock(ds);
	return any;
}
