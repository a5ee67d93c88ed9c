/* SPDX-License-Identifier: MIT */
/*
 * What connections that last are given, and how dead peers are found, on a clock
 * that the test puts forward.
 *
 * Linked with -Wl,--wrap=clock_gettime for that, with --wrap=timerfd_settime so
 * that deadlines are due at once, and with --wrap=sock_unanswered_ms, since the
 * kernel takes minutes to say so of a peer.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/util.h"
#include "proxy/dead_peer.h"
#include "support/peer.h"
#include "support/suite.h"

#define DEAD_MS 180000

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old);
unsigned __wrap_sock_unanswered_ms(int fd);

static time_t ahead_s;
static int mute_fd; /* whose peer owes an answer */
static unsigned mute_ms;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	int err = __real_clock_gettime(clock, ts);

	ts->tv_sec += ahead_s;
	return err;
}

/* Goes off at once: who is woken looks at the clock above. */
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old)
{
	struct itimerspec at_once = { .it_value = { .tv_nsec = 1 } };

	(void)when;
	return __real_timerfd_settime(fd, flags, &at_once, old);
}

unsigned __wrap_sock_unanswered_ms(int fd)
{
	return fd == mute_fd ? mute_ms : 0;
}

static struct conf conf;
static struct worker worker;

static void worker_open(void)
{
	conf = (struct conf){ .dead_timeout_ms = DEAD_MS,
			      .sockopts.keepalive = { 120, 15, 4 } };
	worker = (struct worker){ .conf = &conf };
	ahead_s = 0;
	mute_fd = -1;
	ck_assert_int_eq(loop_init(&worker.loop), 0);
	ck_assert_int_eq(
		relay_env_init(&worker.env, &worker.loop, 4096, 65536, 1), 0);
	list_init(&worker.flows);
}

static void worker_close(void)
{
	loop_untimer(&worker.loop, &worker.dead_peer);
	relay_env_fini(&worker.env);
	loop_fini(&worker.loop);
}

static void let_be(struct job *j)
{
	(void)j;
}

/* A flow that relays, as far as a sweep can see. */
static void flow_open(struct flow *f, int fd[2])
{
	*f = (struct flow){ .worker = &worker,
			    .state = FLOW_RELAYING,
			    .born_ns = now_ns() };
	relay_init(&f->relay, &worker.env);
	f->relay.job.fn = let_be;
	tcp_pair(fd);
	f->relay.side[FLOW_CLIENT].watch.fd = fd[0];
	f->relay.side[FLOW_TARGET].watch.fd = fd[1];
	list_append(&worker.flows, &f->node);
	dead_peer_start(&worker);
}

static void flow_close(struct flow *f, int fd[2])
{
	list_remove(&f->node);
	close(fd[0]);
	close(fd[1]);
}

/* Lets so much time pass, and what is due by then be done. */
static void pass(time_t seconds)
{
	ahead_s += seconds;
	for (int64_t end = now_ms() + 50; now_ms() < end;)
		(void)loop_turn(&worker.loop, 1);
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	ck_assert_int_eq(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

static bool is_kept(int fd)
{
	return option(fd, SOL_SOCKET, SO_KEEPALIVE);
}

START_TEST(a_target_has_keepalive_once_its_connection_has_lasted)
{
	struct flow f;
	int fd[2];

	worker_open();
	flow_open(&f, fd);
	pass(20);
	ck_assert(!is_kept(fd[1]));
	pass(11);
	ck_assert(is_kept(fd[1]));
	ck_assert_int_eq(option(fd[1], IPPROTO_TCP, TCP_KEEPIDLE), 120);
	ck_assert_int_eq(option(fd[1], IPPROTO_TCP, TCP_KEEPINTVL), 15);
	ck_assert_int_eq(option(fd[1], IPPROTO_TCP, TCP_KEEPCNT), 4);
	ck_assert(!is_kept(fd[0])); /* its listening socket has seen to it */
	flow_close(&f, fd);
	worker_close();
}
END_TEST

START_TEST(one_that_comes_between_two_sweeps_has_it_by_the_one_after)
{
	struct flow f[2];
	int fd[2][2];

	worker_open();
	flow_open(&f[0], fd[0]);
	pass(20);
	flow_open(&f[1], fd[1]);
	pass(11);
	ck_assert(is_kept(fd[0][1]));
	ck_assert(!is_kept(fd[1][1]));
	pass(30);
	ck_assert(is_kept(fd[1][1]));
	flow_close(&f[0], fd[0]);
	flow_close(&f[1], fd[1]);
	worker_close();
}
END_TEST

START_TEST(without_keepalive_or_before_the_target_answers_nothing_is_set)
{
	struct flow f[2];
	int fd[2][2];

	worker_open();
	flow_open(&f[0], fd[0]);
	f[0].state = FLOW_CONNECTING;
	pass(31);
	ck_assert(!is_kept(fd[0][1]));
	conf.sockopts.keepalive.idle_s = 0;
	flow_open(&f[1], fd[1]);
	pass(31);
	pass(31);
	ck_assert(!is_kept(fd[1][1]));
	flow_close(&f[0], fd[0]);
	flow_close(&f[1], fd[1]);
	worker_close();
}
END_TEST

/* _i is the side that has died. */
START_TEST(a_peer_that_owes_an_answer_for_too_long_is_dead_and_no_other)
{
	struct flow f[2];
	int fd[2][2];

	worker_open();
	flow_open(&f[0], fd[0]);
	flow_open(&f[1], fd[1]);
	mute_fd = fd[0][_i];
	mute_ms = DEAD_MS;
	pass(31);
	ck_assert(!f[0].relay.side[_i].gone);
	mute_ms = DEAD_MS + 1;
	pass(31);
	ck_assert(f[0].relay.side[_i].gone);
	ck_assert_int_eq(f[0].relay.side[_i].error, ETIMEDOUT);
	ck_assert(!f[0].relay.side[!_i].gone);
	for (int i = 0; i < 2; i++)
		ck_assert(!f[1].relay.side[i].gone);
	flow_close(&f[0], fd[0]);
	flow_close(&f[1], fd[1]);
	worker_close();
}
END_TEST

START_TEST(without_dead_timeout_nobody_is_dead)
{
	struct flow f;
	int fd[2];

	worker_open();
	conf.dead_timeout_ms = 0;
	flow_open(&f, fd);
	mute_fd = fd[0];
	mute_ms = 3600000;
	pass(31);
	ck_assert(!f.relay.side[0].gone);
	flow_close(&f, fd);
	worker_close();
}
END_TEST

START_TEST(without_a_connection_it_is_not_looked_any_more)
{
	struct flow f;
	int fd[2];

	worker_open();
	flow_open(&f, fd);
	flow_close(&f, fd);
	ck_assert(timer_is_set(&worker.dead_peer));
	pass(31);
	ck_assert(!timer_is_set(&worker.dead_peer));
	worker_close();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sweep");
	TCase *tc = support_case(s, "sweep");

	tcase_add_test(tc, a_target_has_keepalive_once_its_connection_has_lasted);
	tcase_add_test(
		tc, one_that_comes_between_two_sweeps_has_it_by_the_one_after);
	tcase_add_test(
		tc,
		without_keepalive_or_before_the_target_answers_nothing_is_set);
	tcase_add_loop_test(
		tc, a_peer_that_owes_an_answer_for_too_long_is_dead_and_no_other,
		0, 2);
	tcase_add_test(tc, without_dead_timeout_nobody_is_dead);
	tcase_add_test(tc, without_a_connection_it_is_not_looked_any_more);
	return support_main(s);
}
