/* SPDX-License-Identifier: MIT */
/*
 * Relays as a program that embeds the library sees them: driven by poll(2) on
 * one descriptor and nothing else. _i is the mode.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/host.h"
#include "support/pacer.h"
#include "support/stamp.h"

#define BULK 2000000

static void expect_ends(const struct sluice_result *r, int a, int b)
{
	ck_assert_int_eq(r->end[0], a);
	ck_assert_int_eq(r->end[1], b);
}

/* Both peers say @size bytes and FIN, in threads. */
static void carry(struct sluice *s, struct call *c, uint64_t size,
		  struct sluice_result *r)
{
	struct pacer up[2], down[2];

	for (int i = 0; i < 2; i++) {
		up[i] = (struct pacer){ .fd = c->peer[i],
					.stream = (unsigned)i,
					.size = size,
					.end = 1 };
		down[i] = up[i];
		down[i].fd = c->peer[!i];
		down[i].pause_us = 300;
		pacer_start_recv(&down[i]);
		pacer_start_send(&up[i]);
	}
	host_pop(s, r, SOON_MS);
	for (int i = 0; i < 2; i++) {
		pacer_join(&up[i]);
		pacer_join(&down[i]);
	}
}

START_TEST(a_transfer_needs_nothing_but_poll_and_is_counted)
{
	struct sluice *s = host_open(_i);
	struct sluice_result r = SLUICE_RESULT_INIT;
	struct call c;
	int mine;

	call_make(s, &c, &mine, 0);
	carry(s, &c, BULK, &r);
	ck_assert_uint_eq(r.id, c.id);
	ck_assert_ptr_eq(r.userdata, &mine);
	ck_assert_int_eq(r.why, SLUICE_WHY_ENDED);
	expect_ends(&r, SLUICE_END_FIN, SLUICE_END_FIN);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(r.error[i], 0);
		ck_assert_uint_eq(r.read[i], BULK);
		ck_assert_uint_eq(r.delivered[i], BULK);
		if (_i != SLUICE_MODE_AUTO)
			ck_assert_uint_eq(r.by_pipe[i],
					  _i == SLUICE_MODE_SPLICE ? BULK : 0);
	}
	ck_assert_int_eq(sluice_pop(s, &r), 0);
	call_hang_up(&c);
	sluice_free(s);
}
END_TEST

/* Return: whether the kernel lets a socket hold so much. */
static int set_room(int fd, int bytes)
{
	int has;
	socklen_t len = sizeof(has);

	/* the first is for those who are allowed more */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &has, &len);
	return has >= bytes;
}

/* More than it moves in one go, and all of it there before: no event will ever
 * tell of the rest. */
START_TEST(what_is_left_for_the_next_dispatch_is_announced)
{
	struct pacer up = { .stream = 1, .size = 5 << 20, .end = 1 };
	struct pacer down = { .stream = 1, .size = 5 << 20, .end = 1 };
	struct sluice *s = host_open(_i);
	struct sluice_result r = SLUICE_RESULT_INIT;
	struct call c;

	call_plug(&c);
	if (!set_room(c.side[0], 16 << 20) || !set_room(c.side[1], 16 << 20) ||
	    !set_room(c.peer[1], 16 << 20)) {
		support_skip("no socket may hold so much here");
		return;
	}
	up.fd = c.peer[0];
	pacer_start_send(&up);
	pacer_join(&up);
	while (peer_unacked(c.peer[0]) > 1)
		sleep_ms(1);
	shutdown(c.peer[1], SHUT_WR);
	ck_assert_int_eq(sluice_relay(s, c.side[0], c.side[1], NULL, NULL), 0);
	host_pop(s, &r, SOON_MS);
	ck_assert_uint_eq(r.delivered[0], 5 << 20);
	down.fd = c.peer[1];
	pacer_start_recv(&down);
	pacer_join(&down);
	call_hang_up(&c);
	sluice_free(s);
}
END_TEST

/*
 * The same with crumbs that take all slots of a pipe, and are few bytes. What
 * one thread sends lies side by side in memory, and what lies side by side
 * shares a slot: so there is always something else in between.
 */
START_TEST(what_a_pipe_had_no_slots_for_is_announced)
{
	static unsigned char said[600 * 20], heard[sizeof(said)];
	struct sluice *s = host_open(_i);
	struct sluice_result r = SLUICE_RESULT_INIT;
	struct call c, other;

	stamp_fill(said, 1, 0, sizeof(said));
	call_plug(&c);
	call_plug(&other);
	for (size_t at = 0; at < sizeof(said); at += 20) {
		ck_assert_int_eq(
			peer_send_all(c.peer[0], said + at, 20, SOON_MS), 0);
		ck_assert_int_eq(
			peer_send_all(other.peer[0], said, 100, SOON_MS), 0);
		ck_assert_int_eq(
			peer_recv_all(other.side[0], heard, 100, SOON_MS), 100);
	}
	while (peer_unacked(c.peer[0]))
		sleep_ms(1);
	ck_assert_int_eq(sluice_relay(s, c.side[0], c.side[1], NULL, NULL), 0);
	host_serve(s, 100);
	ck_assert_int_eq(recv(c.peer[1], heard, sizeof(heard), MSG_DONTWAIT),
			 sizeof(heard));
	ck_assert_int_eq(memcmp(said, heard, sizeof(said)), 0);
	call_hang_up(&c);
	host_pop(s, &r, SOON_MS);
	close(other.side[0]);
	close(other.side[1]);
	call_hang_up(&other);
	sluice_free(s);
}
END_TEST

START_TEST(the_descriptor_is_quiet_when_there_is_nothing_to_do)
{
	struct sluice *s = host_open(_i);
	struct call c;

	ck_assert_int_le(host_serve(s, 50), 1);
	call_make(s, &c, NULL, 0);
	ck_assert_int_le(host_serve(s, 100), 5);
	ck_assert_int_eq(peer_send_all(c.peer[0], "abc", 3, SOON_MS), 0);
	ck_assert_int_eq(peer_wait(sluice_fd(s), POLLIN, SOON_MS), POLLIN);
	host_serve(s, 30);
	ck_assert_int_eq(peer_recv_all(c.peer[1], (char[3]){ 0 }, 3, 0), 3);
	ck_assert_int_le(host_serve(s, 100), 2);
	call_hang_up(&c);
	sluice_free(s);
}
END_TEST

START_TEST(the_sockets_are_the_librarys_and_closed_at_the_end)
{
	struct sluice *s = host_open(_i);
	struct sluice_result r = SLUICE_RESULT_INIT;
	int fds = open_fds();
	struct call c;

	call_make(s, &c, NULL, 0);
	host_serve(s, 20);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_ge(fcntl(c.side[i], F_GETFD), 0);
		ck_assert_int_ne(fcntl(c.side[i], F_GETFL) & O_NONBLOCK, 0);
	}
	call_hang_up(&c);
	host_pop(s, &r, SOON_MS);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(fcntl(c.side[i], F_GETFD), -1);
	/* a pipe may wait for the next */
	ck_assert_int_le(open_fds(), fds + (_i == SLUICE_MODE_SPLICE ? 2 : 0));
	sluice_free(s);
}
END_TEST

/* K33: it would go on reporting a watch that is no more. */
START_TEST(a_duplicate_that_the_caller_keeps_does_no_harm)
{
	struct sluice *s = host_open(_i);
	struct sluice_result r = SLUICE_RESULT_INIT;
	struct call c;
	int copy;

	call_make(s, &c, NULL, 0);
	copy = dup(c.side[0]);
	ck_assert_int_eq(sluice_cancel(s, c.id), 0);
	host_pop(s, &r, SOON_MS);
	ck_assert_int_eq(peer_send_all(c.peer[0], "abc", 3, SOON_MS), 0);
	ck_assert_int_eq(host_serve(s, 50), 0);
	close(copy);
	call_hang_up(&c);
	sluice_free(s);
}
END_TEST

START_TEST(a_reset_is_reported_and_passed_on_after_a_slow_reader)
{
	struct pacer slow = { .stream = 1,
			      .size = 300000,
			      .chunk = 10000,
			      .pause_us = 2000,
			      .delay_ms = 100 };
	struct pacer up = { .stream = 1, .size = 300000 };
	struct sluice *s = host_open(_i);
	struct sluice_result r = SLUICE_RESULT_INIT;
	struct call c;

	call_make(s, &c, NULL, 0);
	up.fd = c.peer[0];
	slow.fd = c.peer[1];
	pacer_start_send(&up);
	pacer_start_recv(&slow);
	do
		host_serve(s, 20);
	while (up.done < up.size || peer_unacked(c.peer[0]));
	pacer_join(&up);
	peer_reset(c.peer[0]);
	c.peer[0] = -1;
	host_pop(s, &r, SOON_MS); /* a timer asks whether all has arrived */
	pacer_join(&slow);
	ck_assert_int_eq(peer_expect_reset(c.peer[1], SOON_MS), 0);
	expect_ends(&r, SLUICE_END_RESET, SLUICE_END_OPEN);
	ck_assert_int_eq(r.why, SLUICE_WHY_ENDED);
	ck_assert_uint_eq(r.delivered[0], 300000);
	call_hang_up(&c);
	sluice_free(s);
}
END_TEST

/* FAULTS 14: one relay is cancelled alone. */
START_TEST(cancel_cuts_one_off_with_a_reset_to_both_and_no_other)
{
	struct sluice *s = host_open(_i);
	struct call c, other;
	struct sluice_result r = SLUICE_RESULT_INIT;
	int mine;

	call_make(s, &c, &mine, 0);
	call_make(s, &other, NULL, 0);
	host_serve(s, 20);
	ck_assert_int_eq(sluice_cancel(s, c.id), 0);
	ck_assert_int_eq(sluice_pop(s, &r), 0); /* it follows */
	host_pop(s, &r, SOON_MS);
	ck_assert_uint_eq(r.id, c.id);
	ck_assert_ptr_eq(r.userdata, &mine);
	ck_assert_int_eq(r.why, SLUICE_WHY_CANCELED);
	expect_ends(&r, SLUICE_END_OPEN, SLUICE_END_OPEN);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(peer_expect_reset(c.peer[i], SOON_MS), 0);
	carry(s, &other, 1000, &r);
	ck_assert_uint_eq(r.id, other.id);
	ck_assert_int_eq(r.why, SLUICE_WHY_ENDED);
	expect_ends(&r, SLUICE_END_FIN, SLUICE_END_FIN);
	call_hang_up(&c);
	call_hang_up(&other);
	sluice_free(s);
}
END_TEST

/* Both have said FIN, but one has yet to read: this is no success. */
START_TEST(what_is_cancelled_at_the_very_end_is_cancelled)
{
	struct sluice *s = host_open(_i);
	struct pacer up = { .stream = 1, .size = 64 << 20, .timeout_ms = 100 };
	struct sluice_result r = SLUICE_RESULT_INIT;
	struct call c;

	call_make(s, &c, NULL, 0);
	up.fd = c.peer[0];
	pacer_start_send(&up);
	host_serve(s, 200);
	ck_assert_int_eq(pacer_wait(&up), -ETIMEDOUT);
	shutdown(c.peer[0], SHUT_WR);
	shutdown(c.peer[1], SHUT_WR);
	host_serve(s, 50);
	ck_assert_int_eq(sluice_cancel(s, c.id), 0);
	ck_assert_int_eq(sluice_cancel(s, c.id), 0); /* not over yet */
	host_pop(s, &r, SOON_MS);
	ck_assert_int_eq(r.why, SLUICE_WHY_CANCELED);
	ck_assert_uint_lt(r.delivered[0], r.read[0]);
	ck_assert_int_eq(r.end[1], SLUICE_END_FIN);
	ck_assert_int_eq(peer_drain(c.peer[1], SOON_MS), -ECONNRESET);
	call_hang_up(&c);
	sluice_free(s);
}
END_TEST

/* FAULTS 14: something bounds the time, and nothing but poll(2) waits. */
START_TEST(a_time_limit_cuts_it_off)
{
	struct sluice *s = host_open(_i);
	int64_t t = now_ms();
	struct sluice_result r = SLUICE_RESULT_INIT;
	struct call c, other;

	call_make(s, &other, NULL, 60000);
	call_make(s, &c, NULL, 100);
	host_pop(s, &r, SOON_MS);
	ck_assert_int_ge(now_ms() - t, 100);
	ck_assert_uint_eq(r.id, c.id);
	ck_assert_int_eq(r.why, SLUICE_WHY_TIMEOUT);
	expect_ends(&r, SLUICE_END_OPEN, SLUICE_END_OPEN);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(peer_expect_reset(c.peer[i], SOON_MS), 0);
	call_hang_up(&c);
	call_hang_up(&other);
	host_pop(s, &r, SOON_MS);
	ck_assert_int_eq(r.why, SLUICE_WHY_ENDED);
	sluice_free(s);
}
END_TEST

/* Its time is up as well, but that has not been noticed yet. */
START_TEST(the_first_reason_to_cut_one_off_is_the_one_reported)
{
	struct sluice *s = host_open(_i);
	struct sluice_result r = SLUICE_RESULT_INIT;
	struct call c;

	call_make(s, &c, NULL, 1);
	sleep_ms(20);
	ck_assert_int_eq(sluice_cancel(s, c.id), 0);
	host_pop(s, &r, SOON_MS);
	ck_assert_int_eq(r.why, SLUICE_WHY_CANCELED);
	call_hang_up(&c);
	sluice_free(s);
}
END_TEST

START_TEST(to_free_a_context_cuts_off_what_runs_with_a_reset)
{
	struct sluice *s = host_open(_i);
	struct call c[10];
	int fds = open_fds();

	for (int i = 0; i < 10; i++) {
		call_make(s, &c[i], NULL, i % 2 ? 60000 : 0);
		if (i % 3)
			host_serve(s, 5); /* others have not begun */
		ck_assert_int_eq(peer_send_all(c[i].peer[0], "abc", 3, SOON_MS),
				 0);
	}
	sluice_free(s);
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(peer_drain(c[i].peer[0], SOON_MS), -ECONNRESET);
		ck_assert_int_eq(peer_drain(c[i].peer[1], SOON_MS), -ECONNRESET);
		call_hang_up(&c[i]);
	}
	ck_assert_int_lt(open_fds(), fds);
}
END_TEST

START_TEST(results_wait_in_the_order_of_their_ends_and_may_be_left)
{
	struct sluice *s = host_open(_i);
	const int order[] = { 2, 0, 3, 1 };
	struct sluice_result r = SLUICE_RESULT_INIT;
	struct call c[4];

	for (int i = 0; i < 4; i++) {
		call_make(s, &c[i], &c[i], 0);
		for (int j = 0; j < i; j++)
			ck_assert_uint_ne(c[i].id, c[j].id);
	}
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(sluice_cancel(s, c[order[i]].id), 0);
		ck_assert_int_eq(sluice_dispatch(s, -1), 0);
	}
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(sluice_pop(s, &r), 1);
		ck_assert_ptr_eq(r.userdata, &c[order[i]]);
		ck_assert_uint_eq(r.id, c[order[i]].id);
	}
	sluice_free(s); /* one result is lost, not leaked */
	for (int i = 0; i < 4; i++)
		call_hang_up(&c[i]);
}
END_TEST

static void plug_local(struct call *c)
{
	for (int i = 0; i < 2; i++) {
		int fd[2];

		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
		c->peer[i] = fd[0];
		c->side[i] = fd[1];
	}
}

START_TEST(local_stream_sockets_can_be_relayed_too)
{
	struct sluice *s = host_open(_i);
	struct sluice_result r = SLUICE_RESULT_INIT;
	struct call c;

	plug_local(&c);
	ck_assert_int_eq(sluice_relay(s, c.side[0], c.side[1], NULL, &c.id), 0);
	carry(s, &c, 300000, &r);
	expect_ends(&r, SLUICE_END_FIN, SLUICE_END_FIN);
	ck_assert_uint_eq(r.delivered[1], 300000);
	call_hang_up(&c);
	sluice_free(s);
}
END_TEST

/* close(2) of a local socket shuts both directions down in one event
 * (unix_release_sock() in net/unix/af_unix.c), so it is no FIN. */
START_TEST(a_local_peer_that_closes_counts_as_reset)
{
	struct sluice *s = host_open(_i);
	struct sluice_result r = SLUICE_RESULT_INIT;
	struct call c;

	plug_local(&c);
	ck_assert_int_eq(sluice_relay(s, c.side[0], c.side[1], NULL, NULL), 0);
	ck_assert_int_eq(send(c.peer[0], "abc", 3, 0), 3);
	while (peer_wait(c.peer[1], POLLIN, 0) != POLLIN)
		host_serve(s, 5);
	ck_assert_int_eq(peer_recv_all(c.peer[1], (char[3]){ 0 }, 3, 0), 3);
	close(c.peer[0]);
	c.peer[0] = -1;
	host_pop(s, &r, SOON_MS);
	ck_assert_int_eq(r.why, SLUICE_WHY_ENDED);
	expect_ends(&r, SLUICE_END_RESET, SLUICE_END_OPEN);
	ck_assert_uint_eq(r.delivered[0], 3);
	call_hang_up(&c);
	sluice_free(s);
}
END_TEST

/* A read of a local socket ends behind a message that came with a descriptor,
 * and no event tells of what lies behind that. */
START_TEST(a_message_with_a_descriptor_ends_no_relay)
{
	struct sluice *s = host_open(_i);
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { .room = { 0 } };
	char heard[7] = "", said[] = "abc";
	struct iovec part = { .iov_base = said, .iov_len = 3 };
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = control.room,
			    .msg_controllen = sizeof(control.room) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	struct sluice_result r = SLUICE_RESULT_INIT;
	struct call c;

	plug_local(&c);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &c.peer[0], sizeof(int));
	ck_assert_int_eq(sendmsg(c.peer[0], &m, 0), 3);
	ck_assert_int_eq(send(c.peer[0], "def", 3, 0), 3);
	ck_assert_int_eq(sluice_relay(s, c.side[0], c.side[1], NULL, NULL), 0);
	host_serve(s, 100);
	ck_assert_int_eq(recv(c.peer[1], heard, 6, MSG_DONTWAIT), 6);
	ck_assert_str_eq(heard, "abcdef");

	/* And what lies before an end. */
	ck_assert_int_eq(sendmsg(c.peer[0], &m, 0), 3);
	ck_assert_int_eq(send(c.peer[0], "def", 3, 0), 3);
	shutdown(c.peer[0], SHUT_WR);
	host_serve(s, 100);
	ck_assert_int_eq(recv(c.peer[1], heard, 7, MSG_DONTWAIT), 6);
	call_hang_up(&c);
	host_pop(s, &r, SOON_MS);
	sluice_free(s);
}
END_TEST

/* One context in a thread of its own. */
static void *own_thread(void *mode)
{
	struct sluice *s = host_open(*(int *)mode);
	struct sluice_result r = SLUICE_RESULT_INIT;
	struct call c;

	for (int i = 0; i < 20; i++) {
		call_make(s, &c, NULL, 0);
		carry(s, &c, 20000, &r);
		expect_ends(&r, SLUICE_END_FIN, SLUICE_END_FIN);
		ck_assert_uint_eq(r.id, c.id);
		call_hang_up(&c);
	}
	sluice_free(s);
	return NULL;
}

START_TEST(two_contexts_share_nothing)
{
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(
			pthread_create(&thread[i], NULL, own_thread, &_i), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("life");
	TCase *tc = support_case(s, "life");
	static const TTest *const *const tests[] = {
		&a_transfer_needs_nothing_but_poll_and_is_counted,
		&what_is_left_for_the_next_dispatch_is_announced,
		&what_a_pipe_had_no_slots_for_is_announced,
		&the_descriptor_is_quiet_when_there_is_nothing_to_do,
		&the_sockets_are_the_librarys_and_closed_at_the_end,
		&a_duplicate_that_the_caller_keeps_does_no_harm,
		&a_reset_is_reported_and_passed_on_after_a_slow_reader,
		&cancel_cuts_one_off_with_a_reset_to_both_and_no_other,
		&what_is_cancelled_at_the_very_end_is_cancelled,
		&a_time_limit_cuts_it_off,
		&the_first_reason_to_cut_one_off_is_the_one_reported,
		&to_free_a_context_cuts_off_what_runs_with_a_reset,
		&results_wait_in_the_order_of_their_ends_and_may_be_left,
		&local_stream_sockets_can_be_relayed_too,
		&a_local_peer_that_closes_counts_as_reset,
		&a_message_with_a_descriptor_ends_no_relay,
		&two_contexts_share_nothing,
	};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_loop_test(tc, *tests[i], 0, MODES);
	return support_main(s);
}
