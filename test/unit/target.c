/* SPDX-License-Identifier: MIT */
/*
 * In which order the addresses of a target are tried.
 */
#include <string.h>

#include "base/util.h"
#include "proxy/target.h"
#include "support/suite.h"

#define NOW	(100 * NS_PER_SEC)
#define SHORTLY (NOW + 29 * NS_PER_SEC)
#define LATER	(NOW + 31 * NS_PER_SEC)

/* A set of one address for each letter of @families, '4' or '6'. */
static struct target_set *make(const char *families)
{
	struct addr addrs[TARGETS_MAX + 8];
	unsigned n = 0;

	for (; families[n]; n++) {
		const char *ip = families[n] == '4' ? "127.0.0.1" : "::1";

		ck_assert_int_eq(addr_parse_ip(&addrs[n], ip, (uint16_t)(n + 1)),
				 0);
	}
	return target_set_new(addrs, n, "name");
}

static void expect(struct target_set *set, uint64_t now, const char *want)
{
	char got[TARGETS_MAX + 1] = "";
	uint8_t order[TARGETS_MAX];

	target_order(set, now, order);
	for (unsigned i = 0; i < set->n; i++)
		got[i] = (char)('a' + order[i]);
	ck_assert_str_eq(got, want);
}

START_TEST(families_alternate_and_begin_with_the_resolvers_first)
{
	static const char *const sets[][2] = {
		{ "4", "a" },
		{ "6", "a" },
		{ "44", "ab" },
		{ "46", "ab" },
		{ "64", "ab" },
		{ "664", "acb" },
		{ "446", "acb" },
		{ "66644", "adbec" },
		{ "44446", "aebcd" },
		{ "646464", "abcdef" },
		{ "6664444", "adbecfg" },
	};

	for (size_t i = 0; i < array_size(sets); i++) {
		struct target_set *set = make(sets[i][0]);

		expect(set, NOW, sets[i][1]);
		target_set_free(set);
	}
}
END_TEST

START_TEST(what_has_failed_is_last_and_the_others_alternate)
{
	struct target_set *set = make("6644");

	ck_assert(target_set_failed(&set->at[0], NOW));
	expect(set, SHORTLY, "bcda");
	ck_assert(!target_set_failed(&set->at[0], NOW + 2));
	ck_assert(target_set_failed(&set->at[2], NOW + 1));
	expect(set, SHORTLY, "bdca"); /* the one that failed first in front */
	ck_assert(target_set_failed(&set->at[1], NOW));
	ck_assert(target_set_failed(&set->at[3], NOW));
	expect(set, SHORTLY, "bdca");
	target_clear_failed(&set->at[0]);
	expect(set, SHORTLY, "abdc");
	target_set_free(set);
}
END_TEST

START_TEST(after_a_while_one_connection_tries_it_in_its_place)
{
	struct target_set *set = make("64");

	target_set_failed(&set->at[0], NOW);
	expect(set, SHORTLY, "ba");
	expect(set, LATER, "ab");
	expect(set, LATER, "ba"); /* and the next one does not */
	expect(set, LATER + 31 * NS_PER_SEC, "ab");
	target_clear_failed(&set->at[0]);
	expect(set, LATER, "ab");
	expect(set, LATER, "ab");
	target_set_free(set);
}
END_TEST

START_TEST(a_set_has_no_more_addresses_than_are_tried)
{
	char families[TARGETS_MAX + 8] = "";
	uint8_t order[TARGETS_MAX];
	struct target_set *set;
	uint64_t seen = 0;

	memset(families, '4', sizeof(families) - 1);
	set = make(families);
	ck_assert_uint_eq(set->n, TARGETS_MAX);
	for (unsigned i = 0; i < set->n; i += 2)
		target_set_failed(&set->at[i], NOW);
	target_order(set, SHORTLY, order);
	for (unsigned i = 0; i < set->n; i++)
		seen |= UINT64_C(1) << order[i];
	ck_assert_uint_eq(seen, (UINT64_C(1) << TARGETS_MAX) - 1);
	target_set_free(set);
}
END_TEST

START_TEST(a_link_local_address_keeps_the_name_of_its_interface)
{
	char text[TARGET_STRLEN];
	struct target_set *set;
	struct addr a, got;

	ck_assert_int_eq(addr_parse_ip(&a, "fe80::1%lo", 80), 0);
	set = target_set_new(&a, 1, "fe80::1%lo");
	ck_assert_ptr_nonnull(set);
	ck_assert_str_eq(set->at[0].ifname, "lo");
	ck_assert_str_eq(target_format(&set->at[0], text), "[fe80::1%lo]:80");
	set->at[0].addr.in6.sin6_scope_id = 77777; /* as it was once */
	ck_assert_int_eq(target_get_addr(&set->at[0], &got), 0);
	ck_assert(addr_equal(&got, &a));
	strcpy(set->at[0].ifname, "nosuch");
	ck_assert_int_eq(target_get_addr(&set->at[0], &got), -ENODEV);
	ck_assert_str_eq(target_format(&set->at[0], text),
			 "[fe80::1%nosuch]:80");
	target_set_free(set);
	/* A number is meant as one. */
	set = target_set_new(&a, 1, "fe80::1%1");
	ck_assert_str_eq(set->at[0].ifname, "");
	target_set_free(set);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("target");
	TCase *tc = support_case(s, "target");

	tcase_add_test(tc, families_alternate_and_begin_with_the_resolvers_first);
	tcase_add_test(tc, what_has_failed_is_last_and_the_others_alternate);
	tcase_add_test(tc, after_a_while_one_connection_tries_it_in_its_place);
	tcase_add_test(tc, a_set_has_no_more_addresses_than_are_tried);
	tcase_add_test(tc, a_link_local_address_keeps_the_name_of_its_interface);
	return support_main(s);
}
