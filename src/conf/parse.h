/* SPDX-License-Identifier: MIT */
/*
 * parse.h - what users write: ports, addresses, sizes, times.
 *
 * For ports and addresses: return NULL, or what is wrong and what would be right,
 * to be put behind the text it is about. For numbers: return 0, -EINVAL for what
 * is not written like one, or -ERANGE for one that is too large for *ret; which
 * are allowed is the caller's to check. On failure *ret is not written.
 */
#ifndef CONF_PARSE_H
#define CONF_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* "253 characters of host name" is the longest that DNS knows. */
#define HOST_LEN_MAX 254

/* Room for a number and its unit. */
#define FORMAT_LEN 24

/**
 * struct endpoint - where to listen or whom to connect to, before it is looked
 *	up
 * @host:	name or numeric address without brackets; "" is every address
 */
struct endpoint {
	char host[HOST_LEN_MAX];
	uint16_t port;
};

const char *parse_port(uint16_t *ret, const char *text, unsigned least);
const char *parse_host(char ret[static HOST_LEN_MAX], const char *text,
		       size_t len);
const char *parse_listen(struct endpoint *ret, const char *text);
const char *parse_target(struct endpoint *ret, const char *text);

int parse_size(size_t *ret, const char *text);
int parse_ms(unsigned *ret, const char *text);
int parse_count(unsigned *ret, const char *text);
char *format_size(size_t n, char out[static FORMAT_LEN]);
char *format_ms(unsigned ms, char out[static FORMAT_LEN]);

#endif /* CONF_PARSE_H */
