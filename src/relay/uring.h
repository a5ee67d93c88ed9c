/* SPDX-License-Identifier: MIT */
/*
 * uring.h - the other engine: io_uring moves what is ordinary in a lane
 *
 * A lane whose @ride is set is on the ring. What is not ordinary (urgent data,
 * a peer that is gone) makes it leave; then it is the pump's, with buffers, and
 * never comes back. In a build without io_uring no lane is ever on it.
 */
#ifndef RELAY_URING_H
#define RELAY_URING_H

#include "relay/relay.h"

bool uring_is_built(void);
int uring_open(struct relay_env *env, bool multishot);
void uring_close(struct relay_env *env);

void uring_start(struct relay *r);
bool uring_end(struct relay *r, enum tally_drop why);

struct conduit *uring_conduit(struct lane *l);
bool uring_leave(struct lane *l);
void uring_settle(struct lane *l);
ssize_t uring_discard(struct lane *l);
bool uring_has_failed(const struct lane *l);
size_t uring_ahead(const struct lane *l);

#endif /* RELAY_URING_H */
