/* SPDX-License-Identifier: MIT */
/*
 * worker.h - a thread that owns all it touches.
 */
#ifndef PROXY_WORKER_H
#define PROXY_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "conf/conf.h"
#include "proxy/flow.h"
#include "proxy/stats.h"

struct server;

/* What a worker is told, each order behind the one before it. */
enum worker_order {
	WORKER_RUN,
	WORKER_HUSH,   /* stop listening; flows may still come in */
	WORKER_FINISH, /* no more will come: end with the last of them */
	WORKER_END,    /* cut off what is left */
};

/**
 * struct worker - one thread
 * @outgoing:	the server's: connections to targets, of all workers
 * @order:	written by the server
 * @obeyed:	the last order that was carried out; written by the worker
 * @load:	flows it has or is about to be given; written by whoever
 *		accepts and by itself
 * @brief_ns:	when the last so many flows ended that had been brief; a ring,
 *		@brief_at is the next to be written
 * @inbox:	flows it was given, under @lock; @has_mail is a look without it
 * @reserve:	a descriptor to give up when there are no others (K29)
 */
struct worker {
	struct server *server;
	struct outgoing_table *outgoing;
	const struct conf *conf;
	unsigned index;
	pthread_t thread;
	struct loop loop;
	struct relay_env env;
	struct stats stats;
	size_t pipe_got;
	struct list acceptors, flows;
	struct timer dead_peer;
	_Atomic int order, obeyed;
	_Atomic unsigned load;
	pthread_mutex_t lock;
	struct list inbox;
	_Atomic int has_mail;
	int reserve;
	uint64_t brief_ns[16];
	unsigned brief_at;
};

int worker_init(struct worker *w, struct server *server, unsigned index);
void worker_fini(struct worker *w);
int worker_start(struct worker *w);
void worker_join(struct worker *w);

void worker_tell(struct worker *w, enum worker_order order);
void worker_give(struct worker *w, struct flow *f);
void worker_leave(struct worker *w, struct flow *f);
bool worker_is_brief(const struct worker *w, uint64_t now);

bool worker_has_reserve(struct worker *w);
bool worker_use_reserve(struct worker *w);

#endif /* PROXY_WORKER_H */
