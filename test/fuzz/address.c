/* SPDX-License-Identifier: MIT */
/*
 * address.c - addresses: as text, as bytes, and back
 *
 * The first byte chooses. Even: the rest is text to be read. Odd: it is the
 * bytes of an address to be written: port, scope, then 4 or 16 of them.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "net/addr.h"

const char *const fuzz_words[] = {
	"::ffff:", "fe80::1%lo", "%1",	 "::", "127.0.0.1",	"10.1", "0x7f",
	"255",	   "::1",	 "ff02", "%",  ":0:0:0:0:0:0:", NULL,
};

/* Reads "1.2.3.4:80" or "[::1]:80" as addr_format() writes it. */
static int read_back(struct addr *ret, const char *written, uint16_t port)
{
	char ip[ADDR_STRLEN];
	size_t n = strrchr(written, ':') - written;

	promise((uint16_t)atoi(written + n + 1) == port);
	memcpy(ip, written, n);
	ip[n] = '\0';
	if (*ip == '[') {
		promise(ip[n - 1] == ']');
		ip[n - 1] = '\0';
		return addr_parse_ip(ret, ip + 1, port);
	}
	return addr_parse_ip(ret, ip, port);
}

/* The IPv4 address that @a is, or is mapped from; NULL if it is neither. */
static const void *v4_of(const struct addr *a)
{
	if (a->sa.sa_family == AF_INET)
		return &a->in.sin_addr;
	if (IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr))
		return &a->in6.sin6_addr.s6_addr[12];
	return NULL;
}

/* Writing and reading gives the same again, an IPv4 one as IPv4. */
static void check_round(const struct addr *a)
{
	char room[ADDR_STRLEN + 2];
	struct addr b;

	memset(room, '#', sizeof(room));
	promise(addr_format(a, room) == room);
	promise(memchr(room, 0, ADDR_STRLEN));
	promise(room[ADDR_STRLEN] == '#');
	promise((*room == '[') == !v4_of(a));
	/* A scope that no interface has, or not of this kind of address, may be
	 * written; whether it can be read is the resolver's to say. */
	if (read_back(&b, room, addr_port(a))) {
		promise(a->sa.sa_family == AF_INET6 && a->in6.sin6_scope_id);
		return;
	}
	if (v4_of(a))
		promise(b.sa.sa_family == AF_INET &&
			!memcmp(v4_of(a), &b.in.sin_addr, 4) &&
			addr_port(&b) == addr_port(a));
	else
		promise(addr_equal(a, &b) && addr_equal(&b, a));
	promise(addr_len(&b) ==
		(b.sa.sa_family == AF_INET ? sizeof(b.in) : sizeof(b.in6)));
}

static void check_text(const char *text)
{
	struct addr a, untouched;

	memset(&a, 0xa5, sizeof(a));
	untouched = a;
	if (addr_parse_ip(&a, text, 8080)) {
		promise(!memcmp(&a, &untouched, sizeof(a)));
		return;
	}
	promise(a.sa.sa_family == AF_INET || a.sa.sa_family == AF_INET6);
	promise(addr_port(&a) == 8080);
	if (!strchr(text, ':')) { /* IPv4, in no other way than this */
		char written[ADDR_STRLEN];

		addr_format(&a, written);
		*strrchr(written, ':') = '\0';
		promise(!strcmp(written, text));
	}
	check_round(&a);
}

static void check_bytes(const uint8_t *data, size_t size)
{
	struct addr a;

	if (size < 8 || addr_any(&a, size < 20 ? AF_INET : AF_INET6,
				 (uint16_t)(data[0] << 8 | data[1])))
		return;
	if (size < 20) {
		memcpy(&a.in.sin_addr, data + 4, 4);
	} else {
		memcpy(&a.in6.sin6_addr, data + 4, 16);
		a.in6.sin6_scope_id = data[2] | (uint32_t)data[3] << 24;
	}
	check_round(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	sandbox_begin(NULL, 0);
	if (*data & 1) {
		check_bytes(data + 1, size - 1);
		return 0;
	}
	text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	check_text(text);
	free(text);
	return 0;
}
