/* SPDX-License-Identifier: MIT */
/*
 * addr.h - a socket address that can be copied, compared and printed.
 */
#ifndef NET_ADDR_H
#define NET_ADDR_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* IPv4 or IPv6, no larger than it has to be: every flow holds one. */
struct addr {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
};

/* "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%scope]:65535" */
#define ADDR_STRLEN (INET6_ADDRSTRLEN + 32)

socklen_t addr_len(const struct addr *a);
uint16_t addr_port(const struct addr *a);
void addr_set_port(struct addr *a, uint16_t port);
bool addr_is_any(const struct addr *a);
bool addr_equal(const struct addr *a, const struct addr *b);
const char *addr_format(const struct addr *a, char out[static ADDR_STRLEN]);

int addr_scope_name(const struct addr *a, char out[static IF_NAMESIZE]);
int addr_refresh_scope(struct addr *a, const char *ifname);

int addr_any(struct addr *ret, int family, uint16_t port);
int addr_parse_ip(struct addr *ret, const char *ip, uint16_t port);
int addr_resolve(struct addr **ret, unsigned *n, const char *host, uint16_t port);

#endif /* NET_ADDR_H */
