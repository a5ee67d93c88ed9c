/* SPDX-License-Identifier: MIT */
/*
 * workers.h - all workers, as the main thread starts and commands them.
 */
#ifndef PROXY_WORKERS_H
#define PROXY_WORKERS_H

#include "proxy/snapshot.h"
#include "proxy/worker.h"

int workers_init(struct workers *all, const struct conf *conf,
		 struct inbox *inbox);
void workers_fini(struct workers *all);

void workers_order(struct workers *all, enum worker_order order);
void workers_snapshot(const struct workers *all, struct snapshot *ret);

#endif /* PROXY_WORKERS_H */
