/* SPDX-License-Identifier: MIT */
/*
 * Addresses: there and back again, and what is none.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/addr.h"
#include "support/suite.h"

/* What is parsed, and how it is written. */
static const struct {
	const char *ip, *text;
	uint16_t port;
	int family;
} good[] = {
	{ "192.0.2.1", "192.0.2.1:80", 80, AF_INET },
	{ "0.0.0.0", "0.0.0.0:0", 0, AF_INET },
	{ "255.255.255.255", "255.255.255.255:65535", 65535, AF_INET },
	{ "::1", "[::1]:1", 1, AF_INET6 },
	{ "::", "[::]:0", 0, AF_INET6 },
	{ "2001:DB8:0:0::1", "[2001:db8::1]:443", 443, AF_INET6 },
	{ "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
	  "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535", 65535, AF_INET6 },
	{ "::ffff:192.0.2.1", "192.0.2.1:80", 80, AF_INET },
	{ "fe80::1%lo", "[fe80::1%lo]:80", 80, AF_INET6 },
	{ "fe80::1%4242", "[fe80::1%4242]:80", 80, AF_INET6 },
};

START_TEST(what_is_read_is_written_the_same)
{
	struct addr a;
	char out[ADDR_STRLEN];

	ck_assert_int_eq(addr_parse_ip(&a, good[_i].ip, good[_i].port), 0);
	ck_assert_int_eq(a.sa.sa_family, good[_i].family);
	ck_assert_uint_eq(addr_port(&a), good[_i].port);
	ck_assert_uint_eq(addr_len(&a), good[_i].family == AF_INET
						? sizeof(struct sockaddr_in)
						: sizeof(struct sockaddr_in6));
	ck_assert_ptr_eq(addr_format(&a, out), out);
	ck_assert_str_eq(out, good[_i].text);
}
END_TEST

static const char *const bad[] = {
	"",	      "10",	     "10.1",	   "1.2.3",
	"1.2.3.4.5",  "1.2.3.256",   "1.2.3.4 ",   " 1.2.3.4",
	"localhost",  "example.org", "[::1]",	   "::1::",
	":",	      ":::",	     "12345::",	   "::1%no-such-if",
	"1.2.3.4%lo", "0x7f.0.0.1",  "1.2.3.4:80", "[::1]:80",
	"fe80::1%",   "::g",	     "2130706433", "1:2:3:4:5:6:7",
};

START_TEST(what_is_no_address_is_refused_and_changes_nothing)
{
	struct addr a, before;

	memset(&a, 0x5a, sizeof(a));
	before = a;
	ck_assert_int_eq(addr_parse_ip(&a, bad[_i], 80), -EINVAL);
	ck_assert_mem_eq(&a, &before, sizeof(a));
}
END_TEST

START_TEST(addresses_are_equal_in_all_their_parts_or_not_at_all)
{
	static const struct {
		const char *ip;
		uint16_t port;
	} all[] = {
		{ "192.0.2.1", 80 },	{ "192.0.2.1", 81 },
		{ "192.0.2.2", 80 },	{ "::ffff:192.0.2.3", 80 },
		{ "::1", 80 },		{ "::1", 81 },
		{ "::2", 80 },		{ "fe80::1%lo", 80 },
		{ "fe80::1%4242", 80 },
	};

	for (size_t i = 0; i < array_size(all); i++)
		for (size_t j = 0; j < array_size(all); j++) {
			struct addr a, b;

			memset(&a, 0, sizeof(a));
			memset(&b, 0xff, sizeof(b));
			addr_parse_ip(&a, all[i].ip, all[i].port);
			addr_parse_ip(&b, all[j].ip, all[j].port);
			ck_assert_msg(addr_equal(&a, &b) == (i == j),
				      "%s:%u and %s:%u", all[i].ip, all[i].port,
				      all[j].ip, all[j].port);
		}
}
END_TEST

START_TEST(the_port_can_be_changed_and_nothing_else_changes)
{
	const char *ips[] = { "192.0.2.1", "2001:db8::1" };

	for (int i = 0; i < 2; i++) {
		struct addr a, b;

		ck_assert_int_eq(addr_parse_ip(&a, ips[i], 1), 0);
		ck_assert_int_eq(addr_parse_ip(&b, ips[i], 40000), 0);
		ck_assert(!addr_equal(&a, &b));
		addr_set_port(&a, 40000);
		ck_assert_uint_eq(addr_port(&a), 40000);
		ck_assert(addr_equal(&a, &b));
	}
}
END_TEST

START_TEST(every_address_of_a_family_is_named)
{
	struct addr a;
	char out[ADDR_STRLEN];

	ck_assert_int_eq(addr_any(&a, AF_INET, 80), 0);
	ck_assert_str_eq(addr_format(&a, out), "0.0.0.0:80");
	ck_assert_int_eq(addr_any(&a, AF_INET6, 81), 0);
	ck_assert_str_eq(addr_format(&a, out), "[::]:81");
	ck_assert_int_eq(addr_any(&a, AF_UNIX, 80), -EAFNOSUPPORT);
	ck_assert_str_eq(addr_format(&a, out), "[::]:81");
	for (size_t i = 0; i < array_size(good); i++) {
		ck_assert_int_eq(addr_parse_ip(&a, good[i].ip, 80), 0);
		ck_assert_int_eq(addr_is_any(&a),
				 !strcmp(good[i].ip, "0.0.0.0") ||
					 !strcmp(good[i].ip, "::"));
	}
}
END_TEST

/* The resolver is asked for nothing that needs a network. */
START_TEST(a_numeric_host_resolves_to_itself)
{
	struct addr want, *got = NULL;
	unsigned n = 0;

	ck_assert_int_eq(addr_parse_ip(&want, good[_i].ip, 80), 0);
	ck_assert_int_eq(addr_resolve(&got, &n, good[_i].ip, 80), 0);
	ck_assert_uint_eq(n, 1);
	ck_assert(addr_equal(got, &want));
	free(got);
}
END_TEST

START_TEST(a_name_resolves_to_addresses_with_the_port)
{
	struct addr *got = NULL;
	unsigned n = 0;

	ck_assert_int_eq(addr_resolve(&got, &n, "localhost", 4711), 0);
	ck_assert_uint_ge(n, 1);
	for (unsigned i = 0; i < n; i++) {
		for (unsigned j = 0; j < i; j++)
			ck_assert(!addr_equal(&got[i], &got[j]));
		ck_assert_uint_eq(addr_port(&got[i]), 4711);
		if (got[i].sa.sa_family == AF_INET)
			ck_assert_uint_eq(ntohl(got[i].in.sin_addr.s_addr) >> 24,
					  127);
		else
			ck_assert(IN6_IS_ADDR_LOOPBACK(&got[i].in6.sin6_addr));
	}
	free(got);
}
END_TEST

START_TEST(a_name_that_cannot_be_is_told_in_the_resolvers_words)
{
	struct addr *got = NULL;
	unsigned n = 7;
	char host[301] = "";
	int err;

	memset(host, 'x', sizeof(host) - 1); /* longer than any name */
	err = addr_resolve(&got, &n, host, 80);
	ck_assert_int_gt(err, 0);
	ck_assert_str_ne(gai_strerror(-err), gai_strerror(12345));
	ck_assert_ptr_null(got);
	ck_assert_uint_eq(n, 7);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("addr");
	TCase *tc = support_case(s, "addr");

	tcase_add_loop_test(tc, what_is_read_is_written_the_same, 0,
			    array_size(good));
	tcase_add_loop_test(tc, what_is_no_address_is_refused_and_changes_nothing,
			    0, array_size(bad));
	tcase_add_test(tc, addresses_are_equal_in_all_their_parts_or_not_at_all);
	tcase_add_test(tc, the_port_can_be_changed_and_nothing_else_changes);
	tcase_add_test(tc, every_address_of_a_family_is_named);
	tcase_add_loop_test(tc, a_numeric_host_resolves_to_itself, 0,
			    array_size(good));
	tcase_add_test(tc, a_name_resolves_to_addresses_with_the_port);
	tcase_add_test(tc, a_name_that_cannot_be_is_told_in_the_resolvers_words);
	return support_main(s);
}
