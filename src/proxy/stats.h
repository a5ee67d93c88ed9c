/* SPDX-License-Identifier: MIT */
/*
 * stats.h - what became of the connections of one worker, in numbers
 *
 * Written by its worker, read by any thread. What the bytes did is counted by
 * the relays, in struct relay_stats.
 */
#ifndef PROXY_STATS_H
#define PROXY_STATS_H

#include "relay/relay_stats.h"

/* Why a flow ended: name, in words. */
#define FLOW_ENDS(X)                                                    \
	X(finished, "both sides sent FIN, and it was forwarded")        \
	X(client_reset, "the client reset")                             \
	X(target_reset, "the target reset")                             \
	X(client_failed, "the connection to the client failed")         \
	X(target_failed, "the connection to the target failed")         \
	X(connect_failed, "no address of the target could be reached")  \
	X(connect_timeout, "no address of the target answered in time") \
	X(connect_self, "the target was the connection itself")         \
	X(unresolved, "the name of the target has not been resolved")   \
	X(forward_loop, "the rule forwards to itself")                  \
	X(client_left, "the client reset before the target answered")   \
	X(no_resources, "no descriptor or no memory available")         \
	X(idle_timeout, "no byte moved for --idle-timeout")             \
	X(half_close_timeout, "one side had sent FIN, and no byte "     \
			      "moved for --half-close-timeout")         \
	X(max_lifetime, "it was older than --max-lifetime")             \
	X(stopped, "cut off by SIGTERM")

enum flow_end {
#define X(name, words) FLOW_##name,
	FLOW_ENDS(X)
#undef X
		FLOW_END_COUNT
};

/**
 * struct stats - counters
 * @accepted:	clients
 * @connected:	of those: connected to the target
 * @ended:	by enum flow_end; accepted = ended + those open now
 * @up, @down:	bytes delivered to targets and to clients, by flows that ended
 * @accept_errors: accept4(2) failed, but for EAGAIN
 * @accept_pauses: accept was paused on a listening socket, without descriptors or
 *		memory, or because it kept failing
 * @accept_reopened: a listening socket that no longer listened was replaced
 */
struct stats {
	counter accepted, connected;
	counter ended[FLOW_END_COUNT];
	counter up, down;
	counter accept_errors, accept_pauses, accept_reopened;
};

/* By enum flow_end. */
extern const char *const flow_end_names[];
extern const char *const flow_end_words[];

#endif /* PROXY_STATS_H */
