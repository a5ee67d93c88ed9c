/* SPDX-License-Identifier: MIT */
/*
 * sweep.h - what is done for connections that last, from time to time.
 */
#ifndef PROXY_DEAD_PEER_H
#define PROXY_DEAD_PEER_H

#include "proxy/worker.h"

void dead_peer_start(struct worker *w);

#endif /* PROXY_DEAD_PEER_H */
