/* SPDX-License-Identifier: MIT */
/*
 * sweep.h - what is done for connections that last, from time to time.
 */
#ifndef DAEMON_SWEEP_H
#define DAEMON_SWEEP_H

#include "daemon/worker.h"

void sweep_begin(struct worker *w);

#endif /* DAEMON_SWEEP_H */
