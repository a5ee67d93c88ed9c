/* SPDX-License-Identifier: MIT */
/*
 * worker.h - a thread that owns everything it touches.
 */
#ifndef PROXY_WORKER_H
#define PROXY_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "conf/conf.h"
#include "net/inbox.h"
#include "proxy/dead_peer.h"
#include "proxy/outgoing.h"
#include "proxy/stats.h"

/* Flows that ended within the last moments and are remembered. */
#define BRIEF_FLOWS 16

/* What the main thread orders all workers to do; each acknowledges. */
enum worker_order {
	WORKER_DRAIN,	 /* acknowledge once no flow remains */
	WORKER_CANCEL,	 /* cut off all flows */
	WORKER_SNAPSHOT, /* take a snapshot of the statistics */
	WORKER_ORDERS,
};

struct snapshot;
struct worker;

/**
 * struct workers - all of them, and what they share
 * @at:		@n of them
 * @outgoing:	connections to targets
 * @inbox:	of the main thread
 * @pending:	acknowledgements to come, by order; the main thread's
 * @snapshots:	one of each
 */
struct workers {
	struct worker *at;
	unsigned n;
	struct outgoing_table outgoing;
	struct inbox *inbox;
	unsigned pending[WORKER_ORDERS];
	struct snapshot *snapshots;
};

/**
 * struct worker - one thread
 * @all:	with the other workers
 * @inbox:	requests of the main thread, and flows of other workers
 * @orders:	those requests
 * @pipe_size:	bytes that a pipe got, 0 if none could be made
 * @flows:	of struct flow
 * @load:	flows it has or has been handed; added to by the worker that
 *		accepts, subtracted from by this one
 * @drain:	acknowledged once there is no flow; NULL: see worker_drain()
 * @quit:	posted last, @over: and then its thread ends
 * @brief_ns:	when the last brief flows ended; a ring, written at @brief_at
 * @reserve:	a descriptor to give up when there is no other (K29)
 */
struct worker {
	struct workers *all;
	unsigned index;
	pthread_t thread;
	struct loop loop;
	struct inbox inbox;
	struct request orders[WORKER_ORDERS];
	struct relay_env env;
	size_t pipe_size;
	struct stats stats;
	struct list flows;
	struct dead_peers dead_peers;
	_Atomic unsigned load;
	struct request *drain;
	struct message quit;
	bool over;
	uint64_t brief_ns[BRIEF_FLOWS];
	unsigned brief_at;
	int reserve;
};

int worker_init(struct worker *w, struct workers *all, const struct conf *conf,
		unsigned index);
void worker_fini(struct worker *w);
int worker_start(struct worker *w);
int worker_drain(struct worker *w, struct request *r);

unsigned workers_load(const struct workers *all);
struct worker *worker_least_loaded(struct worker *self, unsigned more);

void worker_flow_ended(struct worker *w, uint64_t born_ns);
bool worker_is_brief(const struct worker *w, uint64_t now);

bool worker_has_reserve(struct worker *w);
bool worker_use_reserve(struct worker *w);

#endif /* PROXY_WORKER_H */
