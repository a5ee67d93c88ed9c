/* SPDX-License-Identifier: MIT */
/*
 * target.c - the addresses of a target, and which of them to try first
 *
 * Families alternate, as in RFC 8305: where one family is unreachable, the
 * second attempt uses the other one. An address that has failed is tried last for
 * a while, so that an unreachable address delays one connection and not all.
 */
#include "proxy/target.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/sock.h"

/* How long an address that has failed is tried last. */
#define FAILED_NS (30 * NS_PER_SEC)

/* "fe80::1%3" is that interface, whatever its name is. */
static bool has_numeric_scope(const char *host)
{
	const char *scope = strchr(host, '%');

	return scope && isdigit((unsigned char)scope[1]);
}

/**
 * target_set_new() - make a set of the first TARGETS_MAX addresses
 * @addrs:	in the resolver's order, at least one
 * @host:	what they were looked up for
 *
 * Return: a set, or NULL for want of memory.
 */
struct target_set *target_set_new(const struct addr *addrs, unsigned n,
				  const char *host)
{
	struct target_set *set;

	if (n > TARGETS_MAX)
		n = TARGETS_MAX;
	set = calloc(1, sizeof(*set) + n * sizeof(*set->at));
	if (!set)
		return NULL;
	set->n = n;
	for (unsigned i = 0; i < n; i++) {
		struct target *t = &set->at[i];

		t->addr = addrs[i];
		t->local = sock_is_local(&addrs[i]);
		if (!has_numeric_scope(host))
			(void)addr_scope_name(&addrs[i], t->ifname);
	}
	return set;
}

void target_set_free(struct target_set *set)
{
	free(set);
}

/*
 * Until when @t is tried last, 0 if it is not.
 *
 * When that time is over, one connection tries it in its usual place; others try
 * it last until it has answered.
 */
static uint64_t failed_until(struct target *t, uint64_t now)
{
	uint64_t until =
		atomic_load_explicit(&t->failed_until_ns, memory_order_relaxed);

	if (until && until <= now &&
	    atomic_compare_exchange_strong_explicit(
		    &t->failed_until_ns, &until, now + FAILED_NS,
		    memory_order_relaxed, memory_order_relaxed))
		return 0;
	return until;
}

/* The first address that is not placed, of another family than @last if possible.
 * Return: its place in the set, or -1. */
static int pick(const struct target_set *set, const bool *placed, sa_family_t last)
{
	int first = -1;

	for (unsigned i = 0; i < set->n; i++) {
		if (placed[i])
			continue;
		if (set->at[i].addr.sa.sa_family != last)
			return (int)i;
		if (first < 0)
			first = (int)i;
	}
	return first;
}

/* Inserts @i into @order behind those, from @first on, that failed before it. */
static void insert(uint8_t *order, unsigned first, unsigned n, unsigned i,
		   const uint64_t *until)
{
	for (; n > first && until[order[n - 1]] > until[i]; n--)
		order[n] = order[n - 1];
	order[n] = (uint8_t)i;
}

/**
 * target_order() - order the addresses of a set by which to try first
 * @order:	set to all places in the set
 *
 * First those that have not failed, in the resolver's order but with families
 * alternating; then the others, the one that failed first in front.
 */
void target_order(struct target_set *set, uint64_t now,
		  uint8_t order[static TARGETS_MAX])
{
	uint64_t until[TARGETS_MAX];
	bool placed[TARGETS_MAX];
	sa_family_t last = AF_UNSPEC;
	unsigned n = 0, healthy;
	int i;

	if (set->n == 1) {
		order[0] = 0;
		return;
	}
	for (unsigned k = 0; k < set->n; k++) {
		until[k] = failed_until(&set->at[k], now);
		placed[k] = until[k];
	}
	while ((i = pick(set, placed, last)) >= 0) {
		placed[i] = true;
		last = set->at[i].addr.sa.sa_family;
		order[n++] = (uint8_t)i;
	}
	healthy = n;
	for (unsigned k = 0; k < set->n; k++)
		if (until[k])
			insert(order, healthy, n++, k, until);
}

/* It has failed, and is tried last for a while. Return: whether this is new. */
bool target_set_failed(struct target *t, uint64_t now)
{
	return !atomic_exchange_explicit(&t->failed_until_ns, now + FAILED_NS,
					 memory_order_relaxed);
}

/* It has answered. */
void target_clear_failed(struct target *t)
{
	/* Seldom set: a read alone leaves the cache line shared. */
	if (atomic_load_explicit(&t->failed_until_ns, memory_order_relaxed))
		atomic_store_explicit(&t->failed_until_ns, 0,
				      memory_order_relaxed);
}

/**
 * target_get_addr() - the address to connect to now
 *
 * Return: 0, or a negative errno if its interface does not exist.
 */
int target_get_addr(const struct target *t, struct addr *ret)
{
	*ret = t->addr;
	return *t->ifname ? addr_refresh_scope(ret, t->ifname) : 0;
}

/* As addr_format(), also while its interface does not exist. */
const char *target_format(const struct target *t, char out[static TARGET_STRLEN])
{
	char ip[INET6_ADDRSTRLEN] = "?";

	if (!*t->ifname)
		return addr_format(&t->addr, out);
	inet_ntop(AF_INET6, &t->addr.in6.sin6_addr, ip, sizeof(ip));
	snprintf(out, TARGET_STRLEN, "[%s%%%s]:%u", ip, t->ifname,
		 addr_port(&t->addr));
	return out;
}
