/* SPDX-License-Identifier: MIT */
/*
 * flow.h - one forwarded connection, as policy: from where, to where, why it ended.
 */
#ifndef PROXY_FLOW_H
#define PROXY_FLOW_H

#include "proxy/connect.h"
#include "proxy/route.h"

/*
 * enum flow_state - how far a flow has come; flow_step() acts by it
 *
 *	NEW -------- a connect was begun ----> CONNECTING
 *	NEW -------- no connect was begun ---> CLOSING
 *	CONNECTING - connected --------------> RELAYING
 *	CONNECTING - no address answered ----> CLOSING
 *	RELAYING --- relay is done ----------> CLOSING, and freed immediately
 *
 * A flow that is CLOSING is freed after the batch.
 */
enum flow_state {
	FLOW_NEW,
	FLOW_CONNECTING,
	FLOW_RELAYING,
	FLOW_CLOSING,
};

/* The sides of its relay. */
enum flow_side {
	FLOW_CLIENT,
	FLOW_TARGET,
};

/**
 * struct flow - owns both sockets, their watches, and its deadline
 * @node:	in worker.flows
 * @adopt:	on its way to another worker
 * @worker:	runs it
 * @route:	a reference; it holds the rule and its options
 * @targets:	the target's addresses when it began; NULL if its name was not
 *		resolved
 * @target:	the address in use, or tried last
 * @connector:	NULL unless connecting
 * @job:	runs flow_step() after the batch
 * @error:	positive errno of the address that failed last
 * @end:	why it ended, once it is CLOSING
 * @client:	address
 * @born_ns:	when it was accepted
 * @deadline:	of its life; @expired: it was stopped by that
 * @loop:	its client is a connection of this program
 * @relay:	its watches hold the sockets, side[FLOW_CLIENT] the client's
 * @outgoing:	the target's socket, while it is connected
 */
struct flow {
	struct list node;
	struct message adopt;
	struct worker *worker;
	struct route *route;
	enum flow_state state;
	enum flow_end end;
	struct target_set *targets;
	const struct target *target;
	struct connector *connector;
	struct job job;
	int error;
	bool expired, loop;
	struct addr client;
	uint64_t born_ns;
	struct timer deadline;
	struct relay relay;
	struct dead_peer dead_peer;
	struct outgoing outgoing;
};

struct flow *flow_new(struct worker *w, struct route *route, int client,
		      const struct addr *from);
void flow_give(struct flow *f, struct worker *w);
void flows_cancel(struct worker *w);

#endif /* PROXY_FLOW_H */
