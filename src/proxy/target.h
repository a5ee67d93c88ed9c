/* SPDX-License-Identifier: MIT */
/*
 * target.h - the addresses of a target, and the order to try them in.
 */
#ifndef PROXY_TARGET_H
#define PROXY_TARGET_H

#include <net/if.h>
#include <stdatomic.h>

#include "net/addr.h"

/* The most addresses of a name that are used. */
#define TARGETS_MAX 32

/* "[fe80::1%interface]:65535" is shorter than what addr_format() writes. */
#define TARGET_STRLEN (ADDR_STRLEN + IF_NAMESIZE)

/**
 * struct target - one address of a target
 * @addr:	never changes
 * @ifname:	of a link-local address: its interface, whose index is looked up
 *		for each connect; "" if there is none
 * @local:	on this machine: a connect to it may connect to itself (K25)
 * @failed_until_ns: it has failed, and is tried last until then; 0 if not. Every
 *		worker reads and writes it, relaxed: it is a hint.
 */
struct target {
	struct addr addr;
	char ifname[IF_NAMESIZE];
	bool local;
	_Atomic uint64_t failed_until_ns;
};

/**
 * struct target_set - the addresses of a target, in the resolver's order
 *
 * Replaced, never changed, but for @failed_until_ns.
 */
struct target_set {
	unsigned n;
	struct target at[];
};

struct target_set *target_set_new(const struct addr *addrs, unsigned n,
				  const char *host);
void target_set_free(struct target_set *set);

void target_order(struct target_set *set, uint64_t now,
		  uint8_t order[static TARGETS_MAX]);
bool target_set_failed(struct target *t, uint64_t now);
void target_clear_failed(struct target *t);

int target_get_addr(const struct target *t, struct addr *ret);
const char *target_format(const struct target *t, char out[static TARGET_STRLEN]);

#endif /* PROXY_TARGET_H */
