/* SPDX-License-Identifier: MIT */
/*
 * A connector: which of its attempts the owner's watch has in the end, and that
 * no other descriptor is left.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "net/sock.h"
#include "proxy/connect.h"
#include "support/peer.h"
#include "support/suite.h"

#define HOSTS 2

/**
 * struct race - a worker, and a target of two addresses
 * @listener:	of each address; the first has a full queue
 * @filler:	what fills it
 */
struct race {
	struct rule_options options;
	struct worker worker;
	struct workers all;
	int listener[HOSTS], filler[4];
	struct target_set *targets;
	struct watch watch;
	struct connector *connector;
	bool done, won;
	int fds;
};

static int listen_at(struct addr *at, int backlog)
{
	socklen_t len = sizeof(*at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, &at->sa, addr_len(at)), 0);
	ck_assert_int_eq(listen(fd, backlog), 0);
	ck_assert_int_eq(getsockname(fd, &at->sa, &len), 0);
	return fd;
}

static void ready(struct watch *w)
{
	struct race *s = container_of(w, struct race, watch);

	if (s->connector)
		connector_ready(s->connector);
}

static void done(struct connector *c, void *owner)
{
	struct race *s = owner;

	s->connector = NULL;
	s->done = true;
	s->won = c->won;
}

/* Begins to connect to the addresses from @first on. */
static void race_open(struct race *s, unsigned first)
{
	static const struct sockopts plain;
	struct addr at[HOSTS];

	*s = (struct race){ .options.connect_timeout_ms = 60000,
			    .watch.fd = -1,
			    .fds = open_fds() };
	outgoing_init(&s->all.outgoing);
	s->worker = (struct worker){ .all = &s->all, .reserve = -1 };
	ck_assert_int_eq(loop_init(&s->worker.loop), 0);
	ck_assert_int_eq(relay_env_init(&s->worker.env, &s->worker.loop, 4096,
					65536, 1),
			 0);
	for (unsigned i = 0; i < HOSTS; i++) {
		ck_assert_int_eq(addr_parse_ip(&at[i], "127.0.0.1", 0), 0);
		s->listener[i] = listen_at(&at[i], i ? 16 : 0);
	}
	for (size_t i = 0; i < array_size(s->filler); i++)
		s->filler[i] = sock_connect(&at[0], &plain);
	s->targets = target_set_new(at + first, HOSTS - first, "name");
	s->connector = connector_new(&s->worker, &s->options, s->targets,
				     &s->watch, now_ns());
	ck_assert_ptr_nonnull(s->connector);
	connector_run(s->connector, &s->worker, ready, done, s);
}

static void turn_until_done(struct race *s)
{
	for (int64_t end = now_ms() + 20000; !s->done;) {
		ck_assert_int_lt(now_ms(), end);
		(void)loop_turn(&s->worker.loop, 100);
	}
	(void)loop_turn(&s->worker.loop, 0);
}

/* Whether the owner's watch has a connection to the address @i. */
static bool has_connected_to(const struct race *s, unsigned i)
{
	struct addr peer;
	socklen_t len = sizeof(peer);

	return !getpeername(s->watch.fd, &peer.sa, &len) &&
	       addr_equal(&peer, &s->targets->at[i].addr);
}

static void race_close(struct race *s)
{
	close_fd(s->watch.fd);
	for (unsigned i = 0; i < HOSTS; i++)
		close_fd(s->listener[i]);
	for (size_t i = 0; i < array_size(s->filler); i++)
		close_fd(s->filler[i]);
	target_set_free(s->targets);
	relay_env_fini(&s->worker.env);
	loop_fini(&s->worker.loop);
	outgoing_fini(&s->all.outgoing);
	ck_assert_int_eq(open_fds(), s->fds);
}

START_TEST(what_has_connected_is_found_before_epoll_tells)
{
	struct race s;

	race_open(&s, 1);
	ck_assert(!s.done);
	ck_assert(connector_recheck(s.connector));
	ck_assert(s.done && s.won && has_connected_to(&s, 0));
	race_close(&s);
}
END_TEST

START_TEST(what_has_not_connected_is_not_found_and_can_be_cancelled)
{
	struct race s;

	race_open(&s, 0);
	ck_assert(!connector_recheck(s.connector));
	for (int64_t end = now_ms() + 400; !s.done && now_ms() < end;)
		(void)loop_turn(&s.worker.loop, 10);
	if (!s.done) /* else the second was that quick */
		connector_cancel(s.connector);
	race_close(&s);
}
END_TEST

START_TEST(a_second_attempt_that_wins_is_moved_to_the_owners_watch)
{
	char byte = 'x';
	struct race s;
	int peer;

	race_open(&s, 0);
	turn_until_done(&s);
	ck_assert(s.won && has_connected_to(&s, 1));
	ck_assert(s.watch.ready & LOOP_WRITABLE);
	/* And what happens to it is the owner's to know. */
	peer = accept(s.listener[1], NULL, NULL);
	s.watch.ready = 0;
	ck_assert_int_eq(send(peer, &byte, 1, 0), 1);
	for (int64_t end = now_ms() + 20000;
	     !(s.watch.ready & LOOP_READABLE) && now_ms() < end;)
		(void)loop_turn(&s.worker.loop, 100);
	ck_assert(s.watch.ready & LOOP_READABLE);
	close(peer);
	race_close(&s);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("connect");
	TCase *tc = support_case(s, "connect");

	tcase_add_test(tc, what_has_connected_is_found_before_epoll_tells);
	tcase_add_test(tc,
		       what_has_not_connected_is_not_found_and_can_be_cancelled);
	tcase_add_test(tc,
		       a_second_attempt_that_wins_is_moved_to_the_owners_watch);
	return support_main(s);
}
