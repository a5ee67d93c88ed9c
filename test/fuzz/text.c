/* SPDX-License-Identifier: MIT */
/*
 * text.c - what users write: LISTEN, TARGET, hosts, ports, sizes, times
 *
 * Each input is read by all of them. Besides what parse.h promises: what is
 * understood is what was written, told by a second, slower reading, or by
 * writing it out and reading it again.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/parse.h"
#include "fuzz/fuzz.h"

const char *const fuzz_words[] = {
	"*:",
	"[::1]:",
	"[fe80::1%lo]:",
	"127.0.0.1:",
	"localhost:",
	"65535",
	"65536",
	"0",
	"http",
	"K",
	"M",
	"G",
	"ms",
	"s",
	"m",
	"h",
	"2147483647",
	"17179869184",
	"18446744073709551615",
	"]",
	"[",
	":",
	"\"",
	"00000000",
	"255.255.255.255",
	"example.org",
	NULL,
};

#define UNTOUCHED 0xa5

/* Whether the @n bytes at @p are as they were before. */
static bool is_untouched(const void *p, size_t n)
{
	const unsigned char *byte = p;

	while (n && *byte == UNTOUCHED) {
		byte++;
		n--;
	}
	return !n;
}

/* How an input reads as a number, of no more than 25 digits, and a unit. */
__extension__ typedef unsigned __int128 wide;

struct reading {
	bool number;
	wide n;
	const char *unit;
};

static struct reading read_plainly(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	struct reading r = { .unit = text + digits };

	r.number = digits > 0 && digits < 26;
	for (size_t i = 0; r.number && i < digits; i++)
		r.n = r.n * 10 + (unsigned)(text[i] - '0');
	return r;
}

/* @large: it is a number, and too large for what it is read into. */
static void check_error(int err, const void *got, size_t size, bool large,
			struct reading plain)
{
	promise(is_untouched(got, size));
	promise(err == -EINVAL || err == -ERANGE);
	if (plain.number)
		promise((err == -ERANGE) == large);
}

static void check_size(const char *text, struct reading plain)
{
	static const char units[] = "KMG";
	size_t got, again;
	char written[FORMAT_LEN];
	const char *u = NULL;
	bool right = plain.number;
	wide most = SIZE_MAX;
	int err;

	memset(&got, UNTOUCHED, sizeof(got));
	err = parse_size(&got, text);
	if (*plain.unit) {
		u = strchr(units, toupper((unsigned char)*plain.unit));
		right = right && u && !plain.unit[1];
		if (right)
			most >>= 10 * (u - units + 1);
	}
	if (err) {
		check_error(err, &got, sizeof(got), right && plain.n > most,
			    plain);
		promise(!right || plain.n > most);
	} else if (plain.number) {
		promise(right && plain.n <= most);
		promise(got == plain.n << (u ? 10 * (u - units + 1) : 0));
	}
	if (!err) {
		promise(!parse_size(&again, format_size(got, written)));
		promise(again == got);
	}
}

static void check_ms(const char *text, struct reading plain)
{
	static const char *const units[] = { "", "s", "ms", "m", "h" };
	static const unsigned ms[] = { 1000, 1000, 1, 60000, 3600000 };
	unsigned got, again, each = 0;
	char written[FORMAT_LEN];
	int err;

	memset(&got, UNTOUCHED, sizeof(got));
	err = parse_ms(&got, text);
	for (unsigned i = 0; plain.number && i < 5; i++)
		if (!strcmp(plain.unit, units[i]))
			each = ms[i];
	if (err) {
		check_error(err, &got, sizeof(got),
			    each && plain.n > INT_MAX / each, plain);
		promise(!each || plain.n > INT_MAX / each);
		return;
	}
	promise(!plain.number || (each && plain.n <= INT_MAX / each));
	promise(!plain.number || got == plain.n * each);
	promise(!parse_ms(&again, format_ms(got, written)) && again == got);
}

static void check_count(const char *text, struct reading plain)
{
	unsigned got;
	int err;

	memset(&got, UNTOUCHED, sizeof(got));
	err = parse_count(&got, text);
	if (err) {
		check_error(err, &got, sizeof(got),
			    !*plain.unit && plain.n > UINT_MAX, plain);
		promise(!plain.number || *plain.unit || plain.n > UINT_MAX);
	} else {
		promise(!*plain.unit);
		promise(!plain.number || got == plain.n);
	}
}

static void check_port(const char *text, struct reading plain, unsigned least)
{
	uint16_t got;
	const char *why;

	memset(&got, UNTOUCHED, sizeof(got));
	why = parse_port(&got, text, least);
	if (why) {
		promise_message(why);
		promise(is_untouched(&got, sizeof(got)));
	}
	if (plain.number && !*plain.unit)
		promise(!why == (plain.n >= least && plain.n <= UINT16_MAX));
	if (plain.number && *plain.unit)
		promise(why);
	if (!why && plain.number)
		promise(got == plain.n);
}

static void check_host(const char *text, size_t len)
{
	char got[HOST_LEN_MAX];
	const char *why;
	size_t n;

	memset(got, UNTOUCHED, sizeof(got));
	why = parse_host(got, text, len);
	if (why) {
		promise_message(why);
		promise(is_untouched(got, sizeof(got)));
		return;
	}
	n = strnlen(got, sizeof(got));
	promise(n > 0 && n < sizeof(got));
	promise(n == len || (n + 2 == len && *text == '['));
	promise(!memcmp(got, text + (len - n) / 2, n));
	promise(!strpbrk(got, "[]/\\@,*\"' \t\r\n"));
}

/* Writes an endpoint in the way that users do. */
static void write_endpoint(char *out, size_t room, const struct endpoint *e)
{
	if (!*e->host)
		snprintf(out, room, "*:%u", e->port);
	else if (strchr(e->host, ':'))
		snprintf(out, room, "[%s]:%u", e->host, e->port);
	else
		snprintf(out, room, "%s:%u", e->host, e->port);
}

static void check_endpoint(const char *text,
			   const char *(*parse)(struct endpoint *, const char *),
			   bool target)
{
	struct endpoint got, again;
	char written[HOST_LEN_MAX + 16];
	const char *why;

	memset(&got, UNTOUCHED, sizeof(got));
	why = parse(&got, text);
	if (why) {
		promise_message(why);
		promise(is_untouched(&got, sizeof(got)));
		return;
	}
	promise(memchr(got.host, 0, sizeof(got.host)));
	promise(!target || (*got.host && got.port));
	promise(*got.host || !strchr(text, ':') || *text == '*');
	write_endpoint(written, sizeof(written), &got);
	promise(!parse(&again, written));
	promise(!strcmp(got.host, again.host) && got.port == again.port);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct reading plain;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	plain = read_plainly(text);
	sandbox_begin(NULL, 0);
	check_host(text, size); /* which may have a zero byte */
	check_size(text, plain);
	check_ms(text, plain);
	check_count(text, plain);
	check_port(text, plain, 0);
	check_port(text, plain, 1);
	check_endpoint(text, parse_listen, false);
	check_endpoint(text, parse_target, true);
	promise(sandbox_lines() == 0);
	free(text);
	return 0;
}
