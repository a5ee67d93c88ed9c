/* SPDX-License-Identifier: MIT */
/*
 * resolver.h - resolves names in threads of its own.
 *
 * getaddrinfo(3) implements /etc/hosts, nsswitch and search domains. It may take
 * any time and cannot be cancelled, so its threads use nothing that the owner
 * frees, and the process can end at any time.
 */
#ifndef DAEMON_RESOLVER_H
#define DAEMON_RESOLVER_H

#include "net/addr.h"
#include "net/loop.h"

struct resolver;

/**
 * struct answer - the result for one name
 * @id:		as given to resolver_ask()
 * @first:	no answer for this name has been taken before
 * @err:	0, or as addr_resolve() returns
 * @addrs:	the taker's to free(3); @n of them
 */
struct answer {
	unsigned id;
	bool first;
	int err;
	struct addr *addrs;
	unsigned n;
};

struct resolver *resolver_new(struct loop *loop);
void resolver_close(struct resolver *r);

int resolver_ask(struct resolver *r, unsigned id, const char *host,
		 uint16_t port);
bool resolver_take(struct resolver *r, struct answer *ret);
void resolver_settle(struct resolver *r, unsigned id);
bool resolver_is_idle(struct resolver *r);
const char *resolver_error(int err);

#endif /* DAEMON_RESOLVER_H */
