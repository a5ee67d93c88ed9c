/* SPDX-License-Identifier: MIT */
/*
 * The table of connections to targets: what is in it, and what only looks alike.
 */
#include <sys/socket.h>

#include "base/util.h"
#include "proxy/outgoing.h"
#include "support/suite.h"

static struct outgoing_table table;

/* A socket with an address of its own. */
static int bound(const char *ip, uint16_t port, struct addr *at)
{
	socklen_t len = sizeof(*at);
	int fd;

	ck_assert_int_eq(addr_parse_ip(at, ip, port), 0);
	fd = socket(at->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, &at->sa, addr_len(at)), 0);
	ck_assert_int_eq(getsockname(fd, &at->sa, &len), 0);
	return fd;
}

static struct addr target;

static bool has(const struct addr *local)
{
	return outgoing_has(&table, local, NULL);
}

static void enter(struct outgoing *o, int fd)
{
	*o = (struct outgoing){ 0 };
	ck_assert_int_eq(addr_parse_ip(&target, "192.0.2.1", 80), 0);
	outgoing_add(&table, o, fd, &target);
}

START_TEST(a_connection_is_found_until_it_is_removed)
{
	struct outgoing one, other;
	struct addr at, at_other;
	int fd, fd_other;

	outgoing_init(&table);
	fd = bound("127.0.0.1", 0, &at);
	fd_other = bound("127.0.0.2", addr_port(&at), &at_other);
	ck_assert(!has(&at));
	enter(&one, fd);
	ck_assert(has(&at));
	ck_assert(!has(&at_other));
	enter(&other, fd_other);
	outgoing_remove(&table, &one);
	ck_assert(!has(&at));
	ck_assert(has(&at_other));
	outgoing_remove(&table, &one);
	outgoing_remove(&table, &other);
	ck_assert(!has(&at_other));
	close_fd(fd);
	close_fd(fd_other);
	outgoing_fini(&table);
}
END_TEST

/* Linux gives a local port to connections to different addresses. */
START_TEST(a_connection_is_told_by_both_of_its_ends)
{
	struct outgoing one, moved = { 0 };
	struct addr at, other;
	int fd;

	outgoing_init(&table);
	fd = bound("127.0.0.1", 0, &at);
	enter(&one, fd);
	ck_assert_int_eq(addr_parse_ip(&other, "192.0.2.1", 81), 0);
	ck_assert(outgoing_has(&table, &at, &target));
	ck_assert(!outgoing_has(&table, &at, &other));
	outgoing_move(&table, &moved, &one);
	outgoing_remove(&table, &one);
	ck_assert(outgoing_has(&table, &at, &target));
	outgoing_remove(&table, &moved);
	ck_assert(!outgoing_has(&table, &at, &target));
	close_fd(fd);
	outgoing_fini(&table);
}
END_TEST

START_TEST(ports_of_one_shard_are_told_apart)
{
	struct outgoing one;
	struct addr at, next;
	int fd;

	outgoing_init(&table);
	fd = bound("127.0.0.1", 0, &at);
	next = at;
	addr_set_port(&next, (uint16_t)(addr_port(&at) + OUTGOING_SHARDS));
	enter(&one, fd);
	ck_assert(!has(&next));
	ck_assert(has(&at));
	outgoing_remove(&table, &one);
	close_fd(fd);
	outgoing_fini(&table);
}
END_TEST

START_TEST(a_link_local_address_is_found_whatever_its_scope)
{
	struct outgoing one = { 0 };
	struct addr at = { .in6.sin6_family = AF_INET6,
			   .in6.sin6_addr.s6_addr = { 0xfe, 0x80, [15] = 1 },
			   .in6.sin6_scope_id = 1 };
	struct addr v4;

	addr_set_port(&at, 1000);
	ck_assert_int_eq(addr_parse_ip(&v4, "127.0.0.1", 1000), 0);
	outgoing_init(&table);
	one.local = at;
	one.added = true;
	list_append(&table.shard[1000 % OUTGOING_SHARDS].entries, &one.node);
	at.in6.sin6_scope_id = 2;
	ck_assert(has(&at));
	ck_assert(!has(&v4));
	at.in6.sin6_addr.s6_addr[15] = 2;
	ck_assert(!has(&at));
	outgoing_remove(&table, &one);
	outgoing_fini(&table);
}
END_TEST

START_TEST(a_descriptor_without_an_address_is_left_out)
{
	struct outgoing one;

	outgoing_init(&table);
	enter(&one, -1);
	ck_assert(!one.added);
	outgoing_remove(&table, &one);
	outgoing_fini(&table);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("outgoing");
	TCase *tc = support_case(s, "outgoing");

	tcase_add_test(tc, a_connection_is_found_until_it_is_removed);
	tcase_add_test(tc, a_connection_is_told_by_both_of_its_ends);
	tcase_add_test(tc, ports_of_one_shard_are_told_apart);
	tcase_add_test(tc, a_link_local_address_is_found_whatever_its_scope);
	tcase_add_test(tc, a_descriptor_without_an_address_is_left_out);
	return support_main(s);
}
