/* SPDX-License-Identifier: MIT */
/*
 * parse.h - what users write: ports, addresses, sizes, times.
 *
 * Functions return NULL, or what is wrong and what would be right, to be put
 * behind the text it is about. On failure *ret is not written.
 */
#ifndef DAEMON_PARSE_H
#define DAEMON_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* "253 characters of host name" is the longest that DNS knows. */
#define HOST_MOST 254

/**
 * struct endpoint - where to listen or whom to connect to, before it is looked
 *	up
 * @host:	name or numeric address without brackets; "" is every address
 */
struct endpoint {
	char host[HOST_MOST];
	uint16_t port;
};

const char *parse_port(uint16_t *ret, const char *text, unsigned least);
const char *parse_host(char ret[static HOST_MOST], const char *text, size_t len);
const char *parse_listen(struct endpoint *ret, const char *text);
const char *parse_target(struct endpoint *ret, const char *text);
const char *parse_size(size_t *ret, const char *text);
const char *parse_ms(unsigned *ret, const char *text);
const char *parse_count(unsigned *ret, const char *text);

#endif /* DAEMON_PARSE_H */
