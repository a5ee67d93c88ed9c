/* SPDX-License-Identifier: MIT */
/*
 * The event loop: edges, jobs and wakes. Deadlines are in deadline.c.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "net/loop.h"
#include "support/peer.h"
#include "support/suite.h"

static struct loop loop;
static int calls; /* of seen() */

static void seen(struct watch *w)
{
	(void)w;
	calls++;
}

static void loop_open(void)
{
	ck_assert_int_eq(loop_init(&loop), 0);
}

/* A watched socket, the peer at fd[0]. The first edge (writable) is over. */
static void watch_one(struct watch *w, int fd[2])
{
	loop_open();
	tcp_pair(fd);
	peer_nodelay(fd[0]);
	peer_nonblock(fd[1]);
	ck_assert_int_eq(loop_watch(&loop, w, fd[1], LOOP_SOCKET, seen), 0);
	ck_assert_int_eq(loop_turn(&loop, 1000), 0);
	ck_assert_uint_eq(w->ready, LOOP_WRITABLE);
	calls = 0;
}

/* Turns until all of @bits have been seen. */
static void turn_until(struct watch *w, uint32_t bits)
{
	int64_t end = now_ms() + 5000;

	while ((w->ready & bits) != bits) {
		ck_assert_msg(now_ms() < end, "wanted %#x, saw %#x", bits,
			      w->ready);
		loop_turn(&loop, 100);
	}
}

static void close_all(int fd[2])
{
	close(fd[0]);
	close(fd[1]);
	loop_fini(&loop);
}

START_TEST(an_edge_is_remembered_until_it_is_used)
{
	struct watch w;
	int fd[2];

	watch_one(&w, fd);
	ck_assert_int_eq(peer_send_all(fd[0], "abc", 3, 1000), 0);
	turn_until(&w, LOOP_READABLE);
	calls = 0;
	for (int i = 0; i < 3; i++)
		loop_turn(&loop, 0);
	ck_assert_int_eq(calls, 0); /* it was told once ... */
	ck_assert_uint_eq(w.ready, LOOP_READABLE | LOOP_WRITABLE | WATCH_UNREAD);

	w.ready = 0; /* ... and what is taken away stays away ... */
	loop_turn(&loop, 20);
	ck_assert_uint_eq(w.ready, 0);
	ck_assert_int_eq(peer_send_all(fd[0], "d", 1, 1000), 0);
	turn_until(&w, LOOP_READABLE); /* ... until there is more */
	close_all(fd);
}
END_TEST

START_TEST(an_end_makes_a_socket_readable_and_a_reset_writable_too)
{
	struct watch w;
	int fd[2];

	watch_one(&w, fd);
	w.ready = 0;
	shutdown(fd[0], SHUT_WR);
	turn_until(&w, EPOLLRDHUP | LOOP_READABLE);
	w.ready = 0;
	peer_reset(fd[0]);
	turn_until(&w, EPOLLERR | EPOLLHUP | LOOP_READABLE | LOOP_WRITABLE);
	close(fd[1]);
	loop_fini(&loop);
}
END_TEST

START_TEST(an_urgent_byte_makes_a_socket_readable)
{
	struct watch w;
	int fd[2];

	watch_one(&w, fd);
	w.ready = 0;
	ck_assert_int_eq(send(fd[0], "!", 1, MSG_OOB), 1);
	turn_until(&w, EPOLLPRI);
	ck_assert_uint_ne(w.ready & LOOP_READABLE, 0);
	close_all(fd);
}
END_TEST

/* What has been told, though it is no longer so, is the owner's to forget. */
START_TEST(an_edge_does_not_take_away_what_another_brought)
{
	struct watch w;
	int fd[2];
	char c;

	watch_one(&w, fd);
	ck_assert_int_eq(send(fd[0], "!", 1, MSG_OOB), 1);
	turn_until(&w, EPOLLPRI);
	ck_assert_int_eq(recv(fd[1], &c, 1, MSG_OOB), 1);
	ck_assert_int_eq(peer_send_all(fd[0], "abc", 3, 1000), 0);
	shutdown(fd[0], SHUT_WR);
	turn_until(&w, EPOLLRDHUP);
	ck_assert_uint_ne(w.ready & EPOLLPRI, 0);
	close_all(fd);
}
END_TEST

START_TEST(what_an_earlier_report_said_is_not_fresh)
{
	static char much[1 << 20];
	struct watch w;
	int fd[2];

	watch_one(&w, fd);
	ck_assert_int_eq(peer_send_all(fd[0], "abc", 3, 1000), 0);
	turn_until(&w, LOOP_READABLE);
	ck_assert_uint_ne(w.ready & WATCH_UNREAD, 0);
	ck_assert_int_eq(recv(fd[1], much, 3, 0), 3);
	while (send(fd[1], much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	w.ready &= ~LOOP_WRITABLE;
	while (recv(fd[0], much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	turn_until(&w, LOOP_WRITABLE);
	ck_assert_uint_eq(w.ready, LOOP_READABLE | LOOP_WRITABLE);
	close_all(fd);
}
END_TEST

START_TEST(what_was_ready_before_the_watch_is_reported)
{
	struct watch w;
	int fd[2];

	loop_open();
	tcp_pair(fd);
	ck_assert_int_eq(peer_send_all(fd[0], "abc", 3, 1000), 0);
	shutdown(fd[0], SHUT_WR);
	ck_assert_int_gt(peer_wait(fd[1], POLLRDHUP, 5000), 0);
	ck_assert_int_eq(loop_watch(&loop, &w, fd[1], LOOP_SOCKET, seen), 0);
	loop_turn(&loop, 1000);
	ck_assert_uint_eq(w.ready, LOOP_READABLE | LOOP_WRITABLE | EPOLLRDHUP |
					   WATCH_UNREAD);
	close_all(fd);
}
END_TEST

START_TEST(what_is_no_longer_watched_is_not_reported)
{
	struct watch w;
	int fd[2];

	watch_one(&w, fd);
	loop_unwatch(&loop, &w);
	ck_assert_int_eq(peer_send_all(fd[0], "abc", 3, 1000), 0);
	ck_assert_int_gt(peer_wait(fd[1], POLLIN, 5000), 0);
	loop_turn(&loop, 20);
	ck_assert_int_eq(calls, 0);
	close_all(fd);
}
END_TEST

START_TEST(a_watch_that_fails_is_told_and_changes_nothing)
{
	struct watch w, again;
	int fd[2];

	watch_one(&w, fd);
	ck_assert_int_eq(loop_watch(&loop, &again, -1, EPOLLIN, seen), -EBADF);
	/* FAULTS 11: one socket, two registrations */
	ck_assert_int_eq(loop_watch(&loop, &again, fd[1], LOOP_SOCKET, seen),
			 -EEXIST);
	ck_assert_int_eq(peer_send_all(fd[0], "abc", 3, 1000), 0);
	turn_until(&w, LOOP_READABLE);
	close_all(fd);
}
END_TEST

/* A job that writes its letter. */
struct letter {
	struct job job;
	char c;
	void (*then)(struct letter *l);
};

static char text[64];

static void write_letter(struct job *j)
{
	struct letter *l = container_of(j, struct letter, job);

	ck_assert(list_empty(&j->node));
	text[strlen(text)] = l->c;
	if (l->then)
		l->then(l);
}

static void letters_init(struct letter *l, size_t n)
{
	loop_open();
	memset(text, 0, sizeof(text));
	for (size_t i = 0; i < n; i++) {
		l[i] = (struct letter){ .job.fn = write_letter,
					.c = (char)('a' + i) };
		list_init(&l[i].job.node);
	}
}

static void expect_turn(const char *want)
{
	memset(text, 0, sizeof(text));
	/* jobs are not waited for: with none pending this would hang */
	ck_assert_int_eq(loop_turn(&loop, loop_pending(&loop) ? -1 : 0), 0);
	ck_assert_str_eq(text, want);
}

START_TEST(jobs_run_once_in_the_order_they_were_asked_for)
{
	struct letter l[3];

	letters_init(l, 3);
	ck_assert(!loop_pending(&loop));
	loop_soon(&loop, &l[1].job);
	loop_soon(&loop, &l[0].job);
	loop_soon(&loop, &l[1].job);
	loop_soon(&loop, &l[2].job);
	ck_assert(loop_pending(&loop));
	expect_turn("bac");
	ck_assert(!loop_pending(&loop));
	expect_turn("");
	loop_fini(&loop);
}
END_TEST

START_TEST(a_job_taken_back_does_not_run)
{
	struct letter l[3];

	letters_init(l, 3);
	for (int i = 0; i < 3; i++)
		loop_soon(&loop, &l[i].job);
	list_remove(&l[1].job.node);
	expect_turn("ac");
	loop_fini(&loop);
}
END_TEST

static void soon_again(struct letter *l)
{
	loop_soon(&loop, &l->job);
}

static void again(struct letter *l)
{
	loop_again(&loop, &l->job);
}

START_TEST(a_job_that_asks_for_itself_waits_for_the_next_turn)
{
	struct letter l[2];

	letters_init(l, 2);
	l[0].then = soon_again;
	loop_soon(&loop, &l[0].job);
	loop_soon(&loop, &l[1].job);
	expect_turn("ab");
	expect_turn("a");
	expect_turn("a");
	loop_fini(&loop);
}
END_TEST

START_TEST(one_of_those_that_had_their_share_runs_a_turn_behind_the_ready)
{
	struct letter l[5];

	letters_init(l, 5);
	for (int i = 0; i < 3; i++)
		loop_again(&loop, &l[i].job);
	loop_soon(&loop, &l[3].job);
	loop_soon(&loop, &l[4].job);
	expect_turn("dea");
	loop_soon(&loop, &l[3].job);
	expect_turn("db");
	expect_turn("c");
	ck_assert(!loop_pending(&loop));
	loop_fini(&loop);
}
END_TEST

START_TEST(those_that_have_a_share_a_turn_take_turns)
{
	struct letter l[3];

	letters_init(l, 3);
	for (int i = 0; i < 3; i++) {
		l[i].then = again;
		loop_again(&loop, &l[i].job);
	}
	expect_turn("a");
	expect_turn("b");
	expect_turn("c");
	expect_turn("a");
	loop_fini(&loop);
}
END_TEST

/* It would have two shares a turn, and the others would wait. */
START_TEST(an_event_for_a_job_that_waits_its_turn_does_not_run_it_twice)
{
	struct letter l[2];

	letters_init(l, 2);
	loop_again(&loop, &l[0].job);
	loop_again(&loop, &l[1].job);
	loop_soon(&loop, &l[1].job);
	expect_turn("a");
	expect_turn("b");
	ck_assert(!loop_pending(&loop));

	loop_soon(&loop, &l[0].job);
	loop_again(&loop, &l[0].job);
	expect_turn("a");
	ck_assert(!loop_pending(&loop));
	loop_fini(&loop);
}
END_TEST

static struct letter asked;

static void ask_for_a_job(struct watch *w)
{
	(void)w;
	ck_assert_str_eq(text, ""); /* the batch is not over yet */
	loop_soon(&loop, &asked.job);
}

START_TEST(two_events_of_a_batch_run_the_job_they_ask_for_once_behind_it)
{
	struct watch w[2];
	int fd[2][2];

	letters_init(&asked, 1);
	for (int i = 0; i < 2; i++) {
		tcp_pair(fd[i]);
		ck_assert_int_eq(loop_watch(&loop, &w[i], fd[i][1], LOOP_SOCKET,
					    ask_for_a_job),
				 0);
	}
	expect_turn("a");
	expect_turn("");
	for (int i = 0; i < 2; i++) {
		close(fd[i][0]);
		close(fd[i][1]);
	}
	loop_fini(&loop);
}
END_TEST

/* FAULTS 13: an end in progress gets there all the same. */
START_TEST(jobs_run_even_when_epoll_wait_fails)
{
	struct letter l[2];

	letters_init(l, 2);
	loop_soon(&loop, &l[0].job);
	loop_again(&loop, &l[1].job);
	close(loop.epfd);
	ck_assert_int_eq(loop_turn(&loop, 0), -EBADF);
	ck_assert_str_eq(text, "ab");
	loop.epfd = -1;
	loop_fini(&loop);
}
END_TEST

static void *wake_later(void *arg)
{
	sleep_ms(50);
	loop_wake(arg);
	return NULL;
}

START_TEST(a_wake_from_another_thread_ends_the_wait)
{
	pthread_t thread;
	uint64_t turns;

	loop_open();
	turns = loop.turns;
	ck_assert_int_eq(pthread_create(&thread, NULL, wake_later, &loop), 0);
	ck_assert_int_eq(loop_turn(&loop, -1), 0);
	ck_assert_uint_eq(loop.turns, turns + 1);
	pthread_join(thread, NULL);
	loop_fini(&loop);
}
END_TEST

START_TEST(wakes_before_the_wait_are_not_lost_and_count_as_one)
{
	int64_t t;

	loop_open();
	loop_wake(&loop);
	loop_wake(&loop);
	ck_assert_int_eq(loop_turn(&loop, -1), 0);
	t = now_ms();
	ck_assert_int_eq(loop_turn(&loop, 50), 0);
	ck_assert_int_ge(now_ms() - t, 49);
	loop_fini(&loop);
}
END_TEST

/* _i descriptors are to be had, one less than it needs at most. */
START_TEST(a_loop_that_cannot_be_made_leaves_nothing_behind)
{
	struct rlimit was, is;
	int fds = open_fds();

	getrlimit(RLIMIT_NOFILE, &was);
	is = was;
	is.rlim_cur = (rlim_t)(dup(0) + _i);
	close((int)is.rlim_cur - _i);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &is), 0);
	ck_assert_int_eq(loop_init(&loop), -EMFILE);
	setrlimit(RLIMIT_NOFILE, &was);
	ck_assert_int_eq(open_fds(), fds);
}
END_TEST

/* What has run, a letter each. */
static char order[16];

static void note(char what)
{
	order[strlen(order)] = what;
}

static struct job asking;

static void flush_runs(struct job *j)
{
	note('f');
}

/* Asks for a flush, and so on for as long as it is run. */
static void asking_runs(struct job *j)
{
	note('j');
	loop.flush_due = true;
	if (strlen(order) < 5)
		loop_soon(&loop, j);
}

START_TEST(what_jobs_have_asked_for_is_flushed_behind_them_and_not_waited_for)
{
	struct job flusher = { .fn = flush_runs };

	loop_open();
	loop.flush = &flusher;
	list_init(&asking.node);
	asking.fn = asking_runs;
	ck_assert(!loop_pending(&loop));
	ck_assert_int_eq(loop_turn(&loop, 0), 0);
	ck_assert_str_eq(order, ""); /* nobody has asked */

	loop.flush_due = true;
	loop_soon(&loop, &asking);
	ck_assert(loop_pending(&loop));
	/* before the jobs, and behind them, with what comes of it */
	ck_assert_int_eq(loop_turn(&loop, 60000), 0);
	ck_assert_str_eq(order, "fjfjfjf");
	ck_assert(!loop_pending(&loop));
	loop_fini(&loop);
}
END_TEST

static void add_job_tests(TCase *tc)
{
	tcase_add_test(tc, jobs_run_once_in_the_order_they_were_asked_for);
	tcase_add_test(tc, a_job_taken_back_does_not_run);
	tcase_add_test(tc, a_job_that_asks_for_itself_waits_for_the_next_turn);
	tcase_add_test(
		tc,
		one_of_those_that_had_their_share_runs_a_turn_behind_the_ready);
	tcase_add_test(tc, those_that_have_a_share_a_turn_take_turns);
	tcase_add_test(
		tc, an_event_for_a_job_that_waits_its_turn_does_not_run_it_twice);
	tcase_add_test(
		tc,
		two_events_of_a_batch_run_the_job_they_ask_for_once_behind_it);
	tcase_add_test(tc, jobs_run_even_when_epoll_wait_fails);
	tcase_add_test(
		tc,
		what_jobs_have_asked_for_is_flushed_behind_them_and_not_waited_for);
}

int main(void)
{
	Suite *s = suite_create("loop");
	TCase *tc = support_case(s, "loop");

	tcase_add_test(tc, an_edge_is_remembered_until_it_is_used);
	tcase_add_test(tc,
		       an_end_makes_a_socket_readable_and_a_reset_writable_too);
	tcase_add_test(tc, an_urgent_byte_makes_a_socket_readable);
	tcase_add_test(tc, an_edge_does_not_take_away_what_another_brought);
	tcase_add_test(tc, what_an_earlier_report_said_is_not_fresh);
	tcase_add_test(tc, what_was_ready_before_the_watch_is_reported);
	tcase_add_test(tc, what_is_no_longer_watched_is_not_reported);
	tcase_add_test(tc, a_watch_that_fails_is_told_and_changes_nothing);
	add_job_tests(tc);
	tcase_add_test(tc, a_wake_from_another_thread_ends_the_wait);
	tcase_add_test(tc, wakes_before_the_wait_are_not_lost_and_count_as_one);
	tcase_add_loop_test(tc, a_loop_that_cannot_be_made_leaves_nothing_behind,
			    0, 3);
	return support_main(s);
}
