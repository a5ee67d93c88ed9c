/* SPDX-License-Identifier: MIT */
/*
 * workers.c - all workers, as the main thread starts and commands them.
 */
#include "proxy/workers.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "proxy/flow.h"

static struct worker *worker_of(struct request *r, enum worker_order order)
{
	return container_of(r - order, struct worker, orders[0]);
}

static int run_drain(struct request *r)
{
	return worker_drain(worker_of(r, WORKER_DRAIN), r);
}

static int run_cancel(struct request *r)
{
	flows_cancel(worker_of(r, WORKER_CANCEL));
	return 0;
}

static int run_snapshot(struct request *r)
{
	struct worker *w = worker_of(r, WORKER_SNAPSHOT);

	snapshot_take(&w->all->snapshots[w->index], w);
	return 0;
}

static void drain_done(struct request *r)
{
	worker_of(r, WORKER_DRAIN)->all->pending[WORKER_DRAIN]--;
}

static void cancel_done(struct request *r)
{
	worker_of(r, WORKER_CANCEL)->all->pending[WORKER_CANCEL]--;
}

static void snapshot_done(struct request *r)
{
	worker_of(r, WORKER_SNAPSHOT)->all->pending[WORKER_SNAPSHOT]--;
}

/**
 * workers_order() - have all workers do something
 *
 * all->pending[@order] is 0 once each has: only then may it be ordered again.
 */
void workers_order(struct workers *all, enum worker_order order)
{
	static const struct request requests[] = {
		[WORKER_DRAIN] = { .run = run_drain, .done = drain_done },
		[WORKER_CANCEL] = { .run = run_cancel, .done = cancel_done },
		[WORKER_SNAPSHOT] = { .run = run_snapshot, .done = snapshot_done },
	};

	for (unsigned i = 0; i < all->n; i++) {
		struct worker *w = &all->at[i];

		w->orders[order] = requests[order];
		all->pending[order]++;
		request_send(&w->orders[order], &w->inbox, all->inbox);
	}
}

/* Adds up the snapshots that WORKER_SNAPSHOT has had them take. */
void workers_snapshot(const struct workers *all, struct snapshot *ret)
{
	*ret = (struct snapshot){ 0 };
	for (unsigned i = 0; i < all->n; i++)
		snapshot_add(ret, &all->snapshots[i]);
}

static void fini_from(struct workers *all, unsigned first)
{
	while (all->n > first)
		worker_fini(&all->at[--all->n]);
}

/* Return: 0, or -1 and the reason has been logged. */
static int make_all(struct workers *all, const struct conf *conf)
{
	for (; all->n < conf->workers; all->n++) {
		struct worker *w = &all->at[all->n];
		int err = worker_init(w, all, conf, all->n);

		if (!err)
			continue;
		if (w->loop.refused)
			log_error("worker %u of %u: cannot create %s: %s",
				  all->n + 1, conf->workers, w->loop.refused,
				  strerror(-err));
		else
			log_error("worker %u of %u: %s", all->n + 1,
				  conf->workers, strerror(-err));
		return -1;
	}
	return 0;
}

/*
 * Starts the threads. One may be refused, by pids.max of a container for
 * example; then those that have started do the work.
 *
 * Return: 0, or -1 and the reason has been logged.
 */
static int start_all(struct workers *all)
{
	unsigned n = 0;
	int err = 0;

	while (n < all->n && !(err = worker_start(&all->at[n])))
		n++;
	if (!err)
		return 0;
	if (!n) {
		log_error("cannot start a worker thread: %s", strerror(-err));
		return -1;
	}
	log_warn("cannot start worker thread %u of %u: %s; running with %u",
		 n + 1, all->n, strerror(-err), n);
	fini_from(all, n);
	return 0;
}

/**
 * workers_init() - make and start the workers
 * @inbox:	of the calling thread
 *
 * Return: 0; or -1, the reason has been logged, and workers_fini() must follow.
 */
int workers_init(struct workers *all, const struct conf *conf, struct inbox *inbox)
{
	*all = (struct workers){ .inbox = inbox };
	outgoing_init(&all->outgoing);
	all->at = calloc(conf->workers, sizeof(*all->at));
	all->snapshots = calloc(conf->workers, sizeof(*all->snapshots));
	if (!all->at || !all->snapshots) {
		log_error("%u workers: %s", conf->workers, strerror(ENOMEM));
		return -1;
	}
	if (!make_all(all, conf) && !start_all(all))
		return 0;
	fini_from(all, 0); /* no thread has started */
	return -1;
}

/* Nothing is pending, and no flow remains; or they never started. */
void workers_fini(struct workers *all)
{
	fini_from(all, 0);
	if (all->at)
		outgoing_fini(&all->outgoing);
	free(all->at);
	free(all->snapshots);
}
