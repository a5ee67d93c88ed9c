/* SPDX-License-Identifier: MIT */
/*
 * addr.c - a socket address that can be copied, compared and printed.
 */
#include "net/addr.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

socklen_t addr_len(const struct addr *a)
{
	return a->sa.sa_family == AF_INET6 ? sizeof(a->in6) : sizeof(a->in);
}

uint16_t addr_port(const struct addr *a)
{
	/* sin_port and sin6_port lie at the same place. */
	return ntohs(a->in.sin_port);
}

void addr_set_port(struct addr *a, uint16_t port)
{
	a->in.sin_port = htons(port);
}

/* 0.0.0.0 or ::, whatever the port. */
bool addr_is_any(const struct addr *a)
{
	return a->sa.sa_family == AF_INET
		       ? a->in.sin_addr.s_addr == htonl(INADDR_ANY)
		       : IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr);
}

bool addr_equal(const struct addr *a, const struct addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family || a->in.sin_port != b->in.sin_port)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return a->in6.sin6_scope_id == b->in6.sin6_scope_id &&
	       !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr,
		       sizeof(a->in6.sin6_addr));
}

/**
 * addr_format() - "192.0.2.1:80", "[2001:db8::1]:80", "[fe80::1%eth0]:80"
 *
 * An IPv4 address that came through an IPv6 socket is written as IPv4.
 *
 * Return: @out.
 */
const char *addr_format(const struct addr *a, char out[static ADDR_STRLEN])
{
	char ip[INET6_ADDRSTRLEN] = "?", name[IF_NAMESIZE], scope[24] = "";
	const struct in6_addr *in6 = &a->in6.sin6_addr;

	if (a->sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a->in.sin_addr, ip, sizeof(ip));
	} else if (IN6_IS_ADDR_V4MAPPED(in6)) {
		inet_ntop(AF_INET, &in6->s6_addr[12], ip, sizeof(ip));
	} else {
		inet_ntop(AF_INET6, in6, ip, sizeof(ip));
		if (a->in6.sin6_scope_id &&
		    if_indextoname(a->in6.sin6_scope_id, name))
			snprintf(scope, sizeof(scope), "%%%s", name);
		else if (a->in6.sin6_scope_id)
			snprintf(scope, sizeof(scope), "%%%u",
				 a->in6.sin6_scope_id);
		snprintf(out, ADDR_STRLEN, "[%s%s]:%u", ip, scope, addr_port(a));
		return out;
	}
	snprintf(out, ADDR_STRLEN, "%s:%u", ip, addr_port(a));
	return out;
}

/**
 * addr_scope_name() - the interface that a link-local address belongs to
 * @out:	its name; "" on failure
 *
 * Return: 0, or a negative errno if it belongs to none or that does not exist.
 */
int addr_scope_name(const struct addr *a, char out[static IF_NAMESIZE])
{
	out[0] = '\0';
	if (a->sa.sa_family != AF_INET6 || !a->in6.sin6_scope_id ||
	    !IN6_IS_ADDR_LINKLOCAL(&a->in6.sin6_addr))
		return -EINVAL;
	if (if_indextoname(a->in6.sin6_scope_id, out))
		return 0;
	out[0] = '\0';
	return -errno;
}

/**
 * addr_refresh_scope() - set the scope of an IPv6 address by its interface
 *
 * An interface that was deleted and made anew has another index.
 *
 * Return: 0, or a negative errno if there is no such interface now.
 */
int addr_refresh_scope(struct addr *a, const char *ifname)
{
	unsigned index = if_nametoindex(ifname);

	if (!index)
		return -errno;
	a->in6.sin6_scope_id = index;
	return 0;
}

/**
 * addr_any() - every address of this machine
 * @family:	AF_INET or AF_INET6
 *
 * Return: 0, or -EAFNOSUPPORT.
 */
int addr_any(struct addr *ret, int family, uint16_t port)
{
	if (family != AF_INET && family != AF_INET6)
		return -EAFNOSUPPORT;
	*ret = (struct addr){ .sa.sa_family = (sa_family_t)family };
	addr_set_port(ret, port);
	return 0;
}

/* The first answer of getaddrinfo(3) that we can use; NULL is none. */
static const struct addrinfo *usable(const struct addrinfo *ai)
{
	while (ai && ai->ai_family != AF_INET && ai->ai_family != AF_INET6)
		ai = ai->ai_next;
	return ai;
}

/* An IPv4 address in IPv6's clothes becomes what it is. */
static void unmap(struct addr *a)
{
	struct addr in = { .in.sin_family = AF_INET };

	if (a->sa.sa_family != AF_INET6 ||
	    !IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr))
		return;
	memcpy(&in.in.sin_addr, &a->in6.sin6_addr.s6_addr[12],
	       sizeof(in.in.sin_addr));
	*a = in;
}

static struct addr from_addrinfo(const struct addrinfo *ai, uint16_t port)
{
	struct addr a = { 0 };

	memcpy(&a, ai->ai_addr, min_size(ai->ai_addrlen, sizeof(a)));
	unmap(&a);
	addr_set_port(&a, port);
	return a;
}

/**
 * addr_parse_ip() - read a numeric address, without asking anybody
 * @ip:		"192.0.2.1", "2001:db8::1", "fe80::1%eth0"; no brackets
 *
 * Return: 0, or -EINVAL.
 */
int addr_parse_ip(struct addr *ret, const char *ip, uint16_t port)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	const struct addrinfo *ai;

	/* "10" and "10.1" are addresses to getaddrinfo(3), to nobody else. */
	if (!strchr(ip, ':')) {
		struct addr a = { .in.sin_family = AF_INET };

		if (inet_pton(AF_INET, ip, &a.in.sin_addr) != 1)
			return -EINVAL;
		addr_set_port(&a, port);
		*ret = a;
		return 0;
	}
	if (getaddrinfo(ip, NULL, &hints, &list))
		return -EINVAL;
	ai = usable(list);
	if (ai)
		*ret = from_addrinfo(ai, port);
	freeaddrinfo(list);
	return ai ? 0 : -EINVAL;
}

static bool contains(const struct addr *list, unsigned n, const struct addr *a)
{
	for (unsigned i = 0; i < n; i++)
		if (addr_equal(&list[i], a))
			return true;
	return false;
}

/**
 * addr_resolve() - every address of a host, once, in the resolver's order
 * @ret:	array; free(3) it
 * @host:	name or numeric address
 *
 * May take as long as the resolver takes.
 *
 * Return: 0; a negative errno; or minus an EAI_ code, which is positive: pass it
 *	negated to gai_strerror(3).
 */
int addr_resolve(struct addr **ret, unsigned *n, const char *host, uint16_t port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	const struct addrinfo *ai;
	struct addr *out;
	unsigned count = 0;
	int err = getaddrinfo(host, NULL, &hints, &list);

	if (err == EAI_SYSTEM && errno)
		return -errno;
	if (err)
		return -err;
	for (ai = usable(list); ai; ai = usable(ai->ai_next))
		count++;
	if (!count) {
		freeaddrinfo(list);
		return -EAI_NONAME;
	}
	out = calloc(count, sizeof(*out));
	if (!out) {
		freeaddrinfo(list);
		return -ENOMEM;
	}
	count = 0;
	for (ai = usable(list); ai; ai = usable(ai->ai_next)) {
		struct addr a = from_addrinfo(ai, port);

		if (!contains(out, count, &a))
			out[count++] = a;
	}
	freeaddrinfo(list);
	*ret = out;
	*n = count;
	return 0;
}
