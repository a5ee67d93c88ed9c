/* SPDX-License-Identifier: MIT */
/*
 * parse.c - what users write: ports, addresses, sizes, times.
 */
#include "daemon/parse.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Digits alone, no sign, no space. Return: whether it is a number. */
static bool read_digits(unsigned long long *ret, const char *text,
			const char **end)
{
	char *stop;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*ret = strtoull(text, &stop, 10);
	*end = stop;
	return !errno;
}

/**
 * parse_port() - a port number, or a service of /etc/services
 * @least:	0 where the kernel may choose one, else 1
 */
const char *parse_port(uint16_t *ret, const char *text, unsigned least)
{
	unsigned long long n;
	const char *end;
	const struct servent *service;

	if (read_digits(&n, text, &end) && !*end) {
		if (n < least || n > UINT16_MAX)
			return "the port must be a number from 1 to 65535";
		*ret = (uint16_t)n;
		return NULL;
	}
	service = isalpha((unsigned char)*text) ? getservbyname(text, "tcp")
						: NULL;
	if (!service)
		return "the port must be a number from 1 to 65535";
	*ret = ntohs((uint16_t)service->s_port);
	return NULL;
}

/* A name or a numeric address, which may stand in brackets. */
const char *parse_host(char ret[static HOST_MOST], const char *text, size_t len)
{
	bool bracket = len && text[0] == '[';

	if (bracket) {
		if (len < 3 || text[len - 1] != ']')
			return "the address has no closing bracket; write "
			       "[::1]:80";
		text++;
		len -= 2;
		if (!memchr(text, ':', len))
			return "only an IPv6 address stands in brackets";
	}
	if (!len)
		return "the host is missing";
	if (len >= HOST_MOST)
		return "the host is too long";
	for (size_t i = 0; i < len; i++)
		if (!isgraph((unsigned char)text[i]) ||
		    strchr("[]/\\@,*\"'", text[i]))
			return "the host has a character that no host has";
	memcpy(ret, text, len);
	ret[len] = '\0';
	return NULL;
}

/* The colon before the port, NULL if there is none. */
static const char *find_colon(const char *text)
{
	const char *from = *text == '[' ? strchr(text, ']') : text;

	return from ? strrchr(from, ':') : NULL;
}

static const char *parse_endpoint(struct endpoint *ret, const char *text,
				  const char *colon, unsigned least)
{
	const char *why = parse_host(ret->host, text, (size_t)(colon - text));

	if (why)
		return why;
	if (*text != '[' && strchr(ret->host, ':'))
		return "an IPv6 address stands in brackets; write [::1]:80";
	return parse_port(&ret->port, colon + 1, least);
}

/* LISTEN: PORT, *:PORT, ADDR:PORT, [V6]:PORT; port 0 is any. */
const char *parse_listen(struct endpoint *ret, const char *text)
{
	const char *colon = find_colon(text), *why;
	struct endpoint e = { .host = "" };

	if (!colon)
		why = parse_port(&e.port, text, 0);
	else if (colon - text == 1 && *text == '*')
		why = parse_port(&e.port, colon + 1, 0);
	else
		why = parse_endpoint(&e, text, colon, 0);
	if (!why)
		*ret = e;
	return why;
}

/* TARGET: HOST:PORT, [V6]:PORT. */
const char *parse_target(struct endpoint *ret, const char *text)
{
	const char *colon = find_colon(text), *why;
	struct endpoint e;

	if (!colon)
		return "a target is HOST:PORT, as in 192.0.2.1:80 or [::1]:80";
	why = parse_endpoint(&e, text, colon, 1);
	if (!why)
		*ret = e;
	return why;
}

/* Bytes: 65536, 64K, 1M, 1G; the units are of 1024. */
const char *parse_size(size_t *ret, const char *text)
{
	static const char units[] = "KMG";
	const char *wrong = "a size is a number of bytes, as in 65536, 64K, 1M";
	unsigned long long n;
	const char *end, *unit;

	if (!read_digits(&n, text, &end))
		return wrong;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || end[1] || n > ULLONG_MAX >> 30)
			return wrong;
		n <<= 10 * (unit - units + 1);
	}
	if (n > SIZE_MAX)
		return wrong;
	*ret = (size_t)n;
	return NULL;
}

/* A time in milliseconds: 10, 10s, 500ms, 2m, 1h; no unit means seconds. */
const char *parse_ms(unsigned *ret, const char *text)
{
	static const struct {
		const char *name;
		unsigned ms;
	} units[] = { { "", 1000 },
		      { "s", 1000 },
		      { "ms", 1 },
		      { "m", 60000 },
		      { "h", 3600000 } };
	unsigned long long n;
	const char *end;

	if (read_digits(&n, text, &end))
		for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
			if (strcmp(end, units[i].name))
				continue;
			if (n > INT_MAX / units[i].ms)
				return "a time must be less than 24 days";
			*ret = (unsigned)n * units[i].ms;
			return NULL;
		}
	return "a time is a number of seconds, or 500ms, 10s, 5m, 1h";
}

const char *parse_count(unsigned *ret, const char *text)
{
	unsigned long long n;
	const char *end;

	if (!read_digits(&n, text, &end) || *end || n > UINT_MAX)
		return "it must be a whole number";
	*ret = (unsigned)n;
	return NULL;
}
