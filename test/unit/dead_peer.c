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

static struct rule_options options;
static struct loop loop;
static struct relay_env env;
static struct dead_peers peers;

/* A relay that runs, as far as the check can see. */
struct pair {
	struct relay relay;
	struct dead_peer dead_peer;
	int fd[2];
};

static void peers_open(void)
{
	options = (struct rule_options){ .dead_timeout_ms = DEAD_MS,
					 .sockopts.keepalive = { 120, 15, 4 } };
	ahead_s = 0;
	mute_fd = -1;
	ck_assert_int_eq(loop_init(&loop), 0);
	ck_assert_int_eq(relay_env_init(&env, &loop, 4096, 65536, 1), 0);
	dead_peers_init(&peers, &loop);
}

static void peers_close(void)
{
	dead_peers_fini(&peers);
	relay_env_fini(&env);
	loop_fini(&loop);
}

static void no_job(struct job *j)
{
	(void)j;
}

static void pair_open(struct pair *p)
{
	relay_init(&p->relay, &env);
	p->relay.job.fn = no_job;
	tcp_pair(p->fd);
	p->relay.side[0].watch.fd = p->fd[0];
	p->relay.side[1].watch.fd = p->fd[1];
	p->dead_peer = (struct dead_peer){ .relay = &p->relay,
					   .options = &options,
					   .since_ns = now_ns() };
	dead_peer_add(&peers, &p->dead_peer);
}

static void pair_close(struct pair *p)
{
	dead_peer_remove(&p->dead_peer);
	close(p->fd[0]);
	close(p->fd[1]);
}

/* Lets so much time pass, and what is due by then be done. */
static void pass(time_t seconds)
{
	ahead_s += seconds;
	for (int64_t end = now_ms() + 50; now_ms() < end;)
		(void)loop_turn(&loop, 1);
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
	struct pair p;

	peers_open();
	pair_open(&p);
	pass(20);
	ck_assert(!is_kept(p.fd[1]));
	pass(11);
	ck_assert(is_kept(p.fd[1]));
	ck_assert_int_eq(option(p.fd[1], IPPROTO_TCP, TCP_KEEPIDLE), 120);
	ck_assert_int_eq(option(p.fd[1], IPPROTO_TCP, TCP_KEEPINTVL), 15);
	ck_assert_int_eq(option(p.fd[1], IPPROTO_TCP, TCP_KEEPCNT), 4);
	ck_assert(!is_kept(p.fd[0])); /* inherited from its listening socket */
	pair_close(&p);
	peers_close();
}
END_TEST

START_TEST(a_connection_between_two_checks_has_keepalive_after_the_next)
{
	struct pair p[2];

	peers_open();
	pair_open(&p[0]);
	pass(20);
	pair_open(&p[1]);
	pass(11);
	ck_assert(is_kept(p[0].fd[1]));
	ck_assert(!is_kept(p[1].fd[1]));
	pass(30);
	ck_assert(is_kept(p[1].fd[1]));
	pair_close(&p[0]);
	pair_close(&p[1]);
	peers_close();
}
END_TEST

START_TEST(without_keepalive_no_socket_is_changed)
{
	struct pair p;

	peers_open();
	options.sockopts.keepalive.idle_s = 0;
	pair_open(&p);
	pass(31);
	pass(31);
	ck_assert(!is_kept(p.fd[1]));
	pair_close(&p);
	peers_close();
}
END_TEST

/* _i is the side that has died. */
START_TEST(only_a_peer_with_a_probe_unanswered_for_too_long_is_dead)
{
	struct pair p[2];

	peers_open();
	pair_open(&p[0]);
	pair_open(&p[1]);
	mute_fd = p[0].fd[_i];
	mute_ms = DEAD_MS;
	pass(31);
	ck_assert(!p[0].relay.side[_i].gone);
	mute_ms = DEAD_MS + 1;
	pass(31);
	ck_assert(p[0].relay.side[_i].gone);
	ck_assert_int_eq(p[0].relay.side[_i].error, ETIMEDOUT);
	ck_assert(!p[0].relay.side[!_i].gone);
	for (int i = 0; i < 2; i++)
		ck_assert(!p[1].relay.side[i].gone);
	pair_close(&p[0]);
	pair_close(&p[1]);
	peers_close();
}
END_TEST

START_TEST(without_dead_timeout_no_peer_is_dead)
{
	struct pair p;

	peers_open();
	options.dead_timeout_ms = 0;
	pair_open(&p);
	mute_fd = p.fd[0];
	mute_ms = 3600000;
	pass(31);
	ck_assert(!p.relay.side[0].gone);
	pair_close(&p);
	peers_close();
}
END_TEST

START_TEST(without_connections_no_check_is_made)
{
	struct pair p;

	peers_open();
	pair_open(&p);
	pair_close(&p);
	ck_assert(timer_is_set(&peers.timer));
	pass(31);
	ck_assert(!timer_is_set(&peers.timer));
	peers_close();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("dead_peer");
	TCase *tc = support_case(s, "dead_peer");

	tcase_add_test(tc, a_target_has_keepalive_once_its_connection_has_lasted);
	tcase_add_test(
		tc, a_connection_between_two_checks_has_keepalive_after_the_next);
	tcase_add_test(tc, without_keepalive_no_socket_is_changed);
	tcase_add_loop_test(
		tc, only_a_peer_with_a_probe_unanswered_for_too_long_is_dead, 0,
		2);
	tcase_add_test(tc, without_dead_timeout_no_peer_is_dead);
	tcase_add_test(tc, without_connections_no_check_is_made);
	return support_main(s);
}
