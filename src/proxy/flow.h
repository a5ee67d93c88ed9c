/* SPDX-License-Identifier: MIT */
/*
 * flow.h - one forwarded connection, as policy: who, where to, why it ended.
 */
#ifndef PROXY_FLOW_H
#define PROXY_FLOW_H

#include "proxy/connect.h"
#include "proxy/outgoing.h"
#include "conf/rule.h"
#include "proxy/stats.h"
#include "relay/relay.h"

struct worker;

/*
 * enum flow_state - how far a flow has come
 *
 *	NEW -------- connect begun ---> CONNECTING
 *	NEW -------- none could be ---> CLOSING
 *	CONNECTING - connected -------> RELAYING
 *	CONNECTING - none answered ---> CLOSING
 *	RELAYING --- relay is done ---> CLOSING, freed at once
 *
 * A flow in CLOSING is freed after the batch.
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
 * @node:	in worker.flows, or on its way there in worker.inbox
 * @worker:	who runs it
 * @targets:	the target's addresses when it began; NULL if its name was not
 *		resolved yet
 * @target:	the one that is used, or was tried last
 * @connector:	connects to one of them, NULL before and afterwards
 * @job:	what is done after the batch, see flow_step()
 * @error:	positive errno of the address that failed last
 * @end:	why it ended, once it is in CLOSING
 * @client:	who
 * @born_ns:	when it was accepted
 * @deadline:	for its life
 * @kept:	keepalive is set on the target's socket
 * @too_old:	it was stopped by that deadline
 * @loop:	its client is a connection of this program
 * @relay:	its watches hold the sockets, side[FLOW_CLIENT] the client's
 * @outgoing:	the target's socket, while it is connected
 */
struct flow {
	struct list node;
	struct worker *worker;
	const struct rule *rule;
	enum flow_state state;
	enum flow_end end;
	struct target_set *targets;
	const struct target *target;
	struct connector *connector;
	struct job job;
	int error;
	bool kept, too_old, loop;
	struct addr client;
	uint64_t born_ns;
	struct timer deadline;
	struct relay relay;
	struct outgoing outgoing;
};

struct flow *flow_new(struct worker *w, const struct rule *rule, int client,
		      const struct addr *from);
void flow_adopt(struct flow *f, struct worker *w);
void flow_stop(struct flow *f);

#endif /* PROXY_FLOW_H */
