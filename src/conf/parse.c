/* SPDX-License-Identifier: MIT */
/*
 * parse.c - what users write: ports, addresses, sizes, times.
 */
#include "conf/parse.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* Of 1024 to the power of their place; the first is none. */
static const char size_units[] = "BKMG";

/* The greatest first, so that format_ms() finds that; seconds need no name. */
static const struct {
	const char *name;
	unsigned ms;
} time_units[] = {
	{ "h", 3600000 }, { "m", 60000 }, { "s", 1000 },
	{ "", 1000 },	  { "ms", 1 },
};

/*
 * Digits alone, no sign, no space. @end is set unless it is no number.
 *
 * Return: 0, -EINVAL if it is no number, or -ERANGE if it is too large.
 */
static int read_digits(unsigned long long *ret, const char *text, const char **end)
{
	char *stop;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*ret = strtoull(text, &stop, 10);
	*end = stop;
	return -errno;
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

	if (!read_digits(&n, text, &end) && !*end) {
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
const char *parse_host(char ret[static HOST_LEN_MAX], const char *text, size_t len)
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
	if (len >= HOST_LEN_MAX)
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
int parse_size(size_t *ret, const char *text)
{
	unsigned long long n;
	const char *end, *unit = size_units;
	int err = read_digits(&n, text, &end);

	if (err == -EINVAL)
		return err;
	if (*end) {
		unit = strchr(size_units + 1, toupper((unsigned char)*end));
		if (!unit || end[1])
			return -EINVAL;
	}
	if (err || n > SIZE_MAX >> 10 * (unit - size_units))
		return -ERANGE;
	*ret = (size_t)n << 10 * (unit - size_units);
	return 0;
}

/* Writes what parse_size() reads as @n, with the greatest unit. */
char *format_size(size_t n, char out[static FORMAT_LEN])
{
	unsigned unit = 0;

	while (n && n % 1024 == 0 && size_units[unit + 1]) {
		n /= 1024;
		unit++;
	}
	snprintf(out, FORMAT_LEN, unit ? "%zu%c" : "%zu", n, size_units[unit]);
	return out;
}

/* A time in milliseconds: 10, 10s, 500ms, 2m, 1h; no unit means seconds. */
int parse_ms(unsigned *ret, const char *text)
{
	unsigned long long n;
	const char *end;
	int err = read_digits(&n, text, &end);

	if (err == -EINVAL)
		return err;
	for (size_t i = 0; i < array_size(time_units); i++) {
		if (strcmp(end, time_units[i].name))
			continue;
		if (err || n > INT_MAX / time_units[i].ms)
			return -ERANGE;
		*ret = (unsigned)n * time_units[i].ms;
		return 0;
	}
	return -EINVAL;
}

/* Writes what parse_ms() reads as @ms, with the greatest unit. */
char *format_ms(unsigned ms, char out[static FORMAT_LEN])
{
	size_t i = 0;

	while (ms % time_units[i].ms)
		i++;
	snprintf(out, FORMAT_LEN, "%u%s", ms / time_units[i].ms,
		 ms ? time_units[i].name : "");
	return out;
}

int parse_count(unsigned *ret, const char *text)
{
	unsigned long long n;
	const char *end;
	int err = read_digits(&n, text, &end);

	if (err == -EINVAL || *end)
		return -EINVAL;
	if (err || n > UINT_MAX)
		return -ERANGE;
	*ret = (unsigned)n;
	return 0;
}
