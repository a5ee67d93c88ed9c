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
 * more arrives, its edge settles the matter. If none has come before the thread
 * would sleep, or for some turns, one poll(2) is asked about all that are still
 * in doubt: a thread that has much to do hardly ever gets there, and one that
 * has little can spare the call.
 */
#include "net/doubt.h"

#include <poll.h>

#include "base/util.h"
#include "net/loop.h"

/* So many are asked about in one call. */
#define ASK_BATCH 64

/* Takes @w for not readable, until an edge or poll(2) says otherwise. */
void doubt_raise(struct doubts *ds, struct watch *w)
{
	w->ready &= ~(uint32_t)LOOP_READABLE;
	list_remove(&w->doubt);
	list_append(&ds->watches, &w->doubt);
	counter_add(&ds->raised, 1);
}

/* Asks no more about @w, which is readable, or will be closed. */
void doubt_settle(struct watch *w)
{
	list_remove(&w->doubt);
}

/* Takes up to ASK_BATCH out of doubt. Return: how many. */
static nfds_t take_some(struct doubts *ds, struct pollfd *p, struct watch **w)
{
	nfds_t n = 0;

	for (; n < ASK_BATCH && doubts_any(ds); n++) {
		w[n] = container_of(ds->watches.next, struct watch, doubt);
		p[n] = (struct pollfd){
			.fd = w[n]->fd,
			.events = POLLIN | POLLPRI | POLLRDHUP,
		};
		list_remove(&w[n]->doubt);
	}
	return n;
}

/**
 * doubts_ask() - settle all doubts
 *
 * What has something to read is reported, as if by an edge. Between batches
 * only.
 *
 * Return: whether there was any such.
 */
bool doubts_ask(struct doubts *ds)
{
	struct pollfd p[ASK_BATCH];
	struct watch *w[ASK_BATCH];
	bool any = false;

	while (doubts_any(ds)) {
		nfds_t n = take_some(ds, p, w);
		bool failed = poll(p, n, 0) < 0; /* no memory: better read */

		counter_add(&ds->asked, n);
		for (nfds_t i = 0; i < n; i++) {
			uint32_t ready = failed ? POLLIN : (uint32_t)p[i].revents;

			if (!ready)
				continue;
			counter_add(&ds->wrong, 1);
			watch_report(w[i], ready);
			any = true;
		}
	}
	return any;
}
