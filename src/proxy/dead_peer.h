/* SPDX-License-Identifier: MIT */
/*
 * dead_peer.h - finds peers that are dead, of connections that last.
 */
#ifndef PROXY_DEAD_PEER_H
#define PROXY_DEAD_PEER_H

#include "base/list.h"
#include "conf/rule.h"
#include "net/loop.h"
#include "relay/relay.h"

/**
 * struct dead_peers - the relays of one thread
 * @relays:	of struct dead_peer
 * @timer:	of the next check, set while there are relays
 */
struct dead_peers {
	struct loop *loop;
	struct list relays;
	struct timer timer;
};

/**
 * struct dead_peer - one relay, embedded in its owner
 * @relay:	running; its side 1 is the target
 * @options:	of its rule
 * @since_ns:	when the connection was accepted
 * @checked:	it has lasted for a check: keepalive is set on the target's socket
 */
struct dead_peer {
	struct list node;
	struct relay *relay;
	const struct rule_options *options;
	uint64_t since_ns;
	bool checked;
};

void dead_peers_init(struct dead_peers *all, struct loop *loop);
void dead_peers_fini(struct dead_peers *all);
void dead_peer_add(struct dead_peers *all, struct dead_peer *p);
void dead_peer_remove(struct dead_peer *p);

#endif /* PROXY_DEAD_PEER_H */
