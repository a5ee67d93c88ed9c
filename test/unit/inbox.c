/* SPDX-License-Identifier: MIT */
/*
 * Messages between two threads: none is lost, the order of a sender is kept, and
 * a request is run by the receiver and acknowledged to the sender.
 */
#include <pthread.h>

#include "base/util.h"
#include "net/inbox.h"
#include "support/clock.h"
#include "support/suite.h"

#define SENDERS	 4
#define MESSAGES 2000

struct note {
	struct message message;
	unsigned sender, number;
};

static struct loop loop;
static struct inbox box;
static struct note notes[SENDERS][MESSAGES];
static unsigned next[SENDERS], total;

static void note_run(struct message *m)
{
	struct note *n = container_of(m, struct note, message);

	ck_assert_uint_eq(n->number, next[n->sender]);
	next[n->sender]++;
	total++;
}

static void *send_all(void *arg)
{
	struct note *mine = arg;

	for (unsigned i = 0; i < MESSAGES; i++)
		inbox_post(&box, &mine[i].message);
	return NULL;
}

static void turn(struct loop *l, struct inbox *b)
{
	ck_assert_int_eq(loop_turn(l, 10000), 0);
	inbox_run(b);
}

START_TEST(messages_of_several_senders_arrive_once_and_in_order)
{
	pthread_t thread[SENDERS];

	ck_assert_int_eq(loop_init(&loop), 0);
	inbox_init(&box, &loop);
	for (unsigned s = 0; s < SENDERS; s++) {
		for (unsigned i = 0; i < MESSAGES; i++)
			notes[s][i] = (struct note){ { .fn = note_run }, s, i };
		ck_assert_int_eq(
			pthread_create(&thread[s], NULL, send_all, notes[s]), 0);
	}
	for (int64_t end = now_ms() + 20000; total < SENDERS * MESSAGES;) {
		turn(&loop, &box);
		ck_assert_int_lt(now_ms(), end);
	}
	for (unsigned s = 0; s < SENDERS; s++)
		pthread_join(thread[s], NULL);
	inbox_run(&box);
	ck_assert_uint_eq(total, SENDERS * MESSAGES);
	inbox_fini(&box);
	loop_fini(&loop);
}
END_TEST

/* The receiver: a loop of its own, until it has run both requests. */
static struct loop peer_loop;
static struct inbox peer_box;
static pthread_t peer;
static bool peer_over;

static void *peer_main(void *arg)
{
	(void)arg;
	while (!peer_over)
		turn(&peer_loop, &peer_box);
	return NULL;
}

static struct request *later;
static unsigned acks;

static int run_now(struct request *r)
{
	(void)r;
	ck_assert(pthread_equal(pthread_self(), peer));
	return -ENOENT;
}

static int run_later(struct request *r)
{
	later = r;
	return REQUEST_PENDING;
}

/* Acknowledges the one before it. */
static int run_last(struct request *r)
{
	(void)r;
	request_ack(later, 7);
	peer_over = true;
	return 0;
}

static void done(struct request *r)
{
	ck_assert(!pthread_equal(pthread_self(), peer));
	ck_assert_int_eq(r->result, r->run == run_now	  ? -ENOENT
				    : r->run == run_later ? 7
							  : 0);
	acks++;
}

START_TEST(requests_are_run_by_the_receiver_and_acknowledged_to_the_sender)
{
	struct request now = { .run = run_now, .done = done };
	struct request pending = { .run = run_later, .done = done };
	struct request last = { .run = run_last, .done = done };

	ck_assert_int_eq(loop_init(&loop), 0);
	ck_assert_int_eq(loop_init(&peer_loop), 0);
	inbox_init(&box, &loop);
	inbox_init(&peer_box, &peer_loop);
	ck_assert_int_eq(pthread_create(&peer, NULL, peer_main, NULL), 0);
	request_send(&now, &peer_box, &box);
	while (acks < 1)
		turn(&loop, &box);
	request_send(&pending, &peer_box, &box);
	ck_assert_uint_eq(acks, 1);
	request_send(&last, &peer_box, &box);
	while (acks < 3)
		turn(&loop, &box);
	pthread_join(peer, NULL);
	inbox_fini(&peer_box);
	inbox_fini(&box);
	loop_fini(&peer_loop);
	loop_fini(&loop);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("inbox");
	TCase *tc = support_case(s, "inbox");

	tcase_add_test(tc, messages_of_several_senders_arrive_once_and_in_order);
	tcase_add_test(
		tc,
		requests_are_run_by_the_receiver_and_acknowledged_to_the_sender);
	return support_main(s);
}
