/* SPDX-License-Identifier: MIT */
/*
 * The store of buffers, and a buffer as conduit.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "relay/bufs.h"
#include "support/peer.h"
#include "support/stamp.h"
#include "support/suite.h"

#define SIZE 8192

static struct loop loop;
static struct relay_stats stats;
static struct bufs store;

static void store_open(void)
{
	ck_assert_int_eq(loop_init(&loop), 0);
	ck_assert_int_eq(bufs_init(&store, SIZE, &stats, &loop), 0);
}

static void store_close(void)
{
	ck_assert_uint_eq(counter_read(&stats.buffers_now), 0);
	bufs_fini(&store);
	loop_fini(&loop);
}

START_TEST(a_store_owns_a_buffer_from_the_start)
{
	struct buf *b;

	store_open();
	ck_assert_uint_eq(store.freelist.n, 1);
	ck_assert_uint_eq(counter_read(&stats.buffers_now), 0);
	b = container_of(store.freelist.free.next, struct buf, node);
	ck_assert_ptr_eq(buf_take(&store), b);
	ck_assert_uint_eq(store.freelist.n, 0);
	ck_assert_uint_eq(b->conduit.size, SIZE);
	ck_assert_uint_eq(b->conduit.held, 0);
	buf_give(b);
	store_close();
}
END_TEST

START_TEST(the_buffer_given_back_last_is_lent_first)
{
	struct buf *b[3];

	store_open();
	for (int i = 0; i < 3; i++)
		b[i] = buf_take(&store);
	buf_give(b[0]);
	buf_give(b[2]);
	buf_give(b[1]);
	ck_assert_ptr_eq(buf_take(&store), b[1]);
	ck_assert_ptr_eq(buf_take(&store), b[2]);
	ck_assert_ptr_eq(buf_take(&store), b[0]);
	for (int i = 0; i < 3; i++)
		buf_give(b[i]);
	store_close();
}
END_TEST

START_TEST(what_was_inside_is_gone_with_the_giving_back)
{
	struct buf *b;

	store_open();
	b = buf_take(&store);
	b->head = 5;
	b->conduit.held = 7;
	buf_give(b);
	ck_assert_ptr_eq(buf_take(&store), b);
	ck_assert_uint_eq(b->head, 0);
	ck_assert_uint_eq(b->conduit.held, 0);
	buf_give(b);
	store_close();
}
END_TEST

static bool is_mapped(const void *at)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *start = (char *)at - (uintptr_t)at % page;

	return !msync(start, page, MS_ASYNC); /* or ENOMEM */
}

static void nobody_asks_for_a_while(void)
{
	for (int i = 0; i < 3; i++)
		timers_run(&loop.timers, timers_next(&loop.timers));
}

START_TEST(after_a_rush_all_memory_is_given_back_but_one_buffer)
{
	struct buf *b[100];
	int mapped = 0;

	store_open();
	for (int i = 0; i < 100; i++) {
		b[i] = buf_take(&store);
		ck_assert_ptr_nonnull(b[i]);
		for (int j = 0; j < i; j++)
			ck_assert_ptr_ne(b[i], b[j]);
	}
	ck_assert_uint_eq(counter_read(&stats.buffers_now), 100);
	for (int i = 0; i < 100; i++)
		buf_give(b[i]);
	ck_assert_uint_eq(counter_read(&stats.buffers_max), 100);
	nobody_asks_for_a_while();
	ck_assert_uint_eq(store.freelist.n, 1);
	ck_assert_uint_eq(loop.timers.n, 0); /* an idle thread sleeps */
	for (int i = 0; i < 100; i++)
		mapped += is_mapped(b[i]->data);
	ck_assert_int_eq(mapped, 1);
	store_close();
}
END_TEST

START_TEST(a_buffer_for_more_bytes_has_the_room_and_is_not_kept)
{
	struct buf *big, *small, *b[3];

	store_open();
	big = buf_take_sized(&store, 5 * SIZE + 1);
	ck_assert_uint_ge(big->conduit.size, 5 * SIZE + 1);
	memset(big->data, 1, 5 * SIZE + 1); /* ASan looks on */
	small = buf_take_sized(&store, SIZE);
	ck_assert_uint_eq(small->conduit.size, SIZE);
	buf_give(small);
	buf_give(big);
	for (int i = 0; i < 3; i++) { /* more than there can be free ones */
		b[i] = buf_take(&store);
		ck_assert_uint_eq(b[i]->conduit.size, SIZE);
	}
	for (int i = 0; i < 3; i++)
		buf_give(b[i]);
	ck_assert(!is_mapped(big));
	store_close();
}
END_TEST

START_TEST(a_buffer_is_filled_once_and_drained_in_pieces_in_order)
{
	char sent[3000], got[3000];
	struct conduit *c;
	int in[2], out[2];

	store_open();
	tcp_pair(in);
	tcp_pair(out);
	peer_nonblock(in[1]);
	stamp_fill(sent, 1, 0, sizeof(sent));
	ck_assert_int_eq(peer_send_all(in[0], sent, sizeof(sent), 1000), 0);
	while (peer_unread(in[1]) < (int)sizeof(sent))
		sleep_us(100);

	c = &buf_take(&store)->conduit;
	ck_assert_int_eq(c->ops->fill(c, in[1]), sizeof(sent));
	ck_assert_uint_eq(c->held, sizeof(sent));
	for (size_t left = sizeof(sent); left;) {
		size_t kept = left > 1000 ? left - 1000 : 0;
		ssize_t n;

		c->held -= kept; /* as a sink that takes little would do */
		n = c->ops->drain(c, out[0]);
		ck_assert_int_gt(n, 0);
		c->held += kept;
		left -= (size_t)n;
		ck_assert_uint_eq(c->held, left);
	}
	ck_assert_int_eq(peer_recv_all(out[1], got, sizeof(got), 1000),
			 sizeof(got));
	ck_assert_int_eq(stamp_check(got, 1, 0, sizeof(got)), -1);
	ck_assert_uint_eq(counter_read(&stats.recv.bytes), sizeof(sent));
	ck_assert_uint_eq(counter_read(&stats.send.bytes), sizeof(sent));
	c->ops->give(c);
	store_close();
	close(in[0]);
	close(in[1]);
	close(out[0]);
	close(out[1]);
}
END_TEST

START_TEST(an_end_and_nothing_to_read_are_told_and_hold_nothing)
{
	struct conduit *c;
	int in[2];

	store_open();
	tcp_pair(in);
	peer_nonblock(in[1]);
	signal(SIGPIPE, SIG_DFL); /* it kills */
	c = &buf_take(&store)->conduit;
	ck_assert_int_eq(c->ops->fill(c, in[1]), -EAGAIN);
	shutdown(in[0], SHUT_WR);
	ck_assert_int_gt(peer_wait(in[1], POLLIN, 1000), 0);
	ck_assert_int_eq(c->ops->fill(c, in[1]), 0);
	ck_assert_uint_eq(c->held, 0);
	peer_reset(in[0]);
	c->held = 1;
	while (c->ops->drain(c, in[1]) > 0)
		c->held = 1;
	ck_assert_uint_eq(c->held, 1);
	c->ops->give(c);
	store_close();
	close(in[1]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("bufs");
	TCase *tc = support_case(s, "bufs");

	tcase_add_test(tc, a_store_owns_a_buffer_from_the_start);
	tcase_add_test(tc, the_buffer_given_back_last_is_lent_first);
	tcase_add_test(tc, what_was_inside_is_gone_with_the_giving_back);
	tcase_add_test(tc, after_a_rush_all_memory_is_given_back_but_one_buffer);
	tcase_add_test(tc, a_buffer_for_more_bytes_has_the_room_and_is_not_kept);
	tcase_add_test(tc,
		       a_buffer_is_filled_once_and_drained_in_pieces_in_order);
	tcase_add_test(tc, an_end_and_nothing_to_read_are_told_and_hold_nothing);
	return support_main(s);
}
