/* SPDX-License-Identifier: MIT */
/*
 * What sluice.h says of errors: which there are, and that after one nothing
 * has changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/host.h"

static int new_with(struct sluice_options o)
{
	struct sluice *s = NULL;
	int fds = open_fds(), err = sluice_new(&s, &o);

	if (err)
		ck_assert_ptr_null(s);
	sluice_free(s);
	ck_assert_int_eq(open_fds(), fds);
	return err;
}

START_TEST(options_out_of_their_range_are_refused)
{
	struct sluice_options o = SLUICE_OPTIONS_INIT, bad;

	ck_assert_int_eq(new_with(o), 0);
	bad = o;
	bad.mode = SLUICE_MODE_AUTO + 1;
	ck_assert_int_eq(new_with(bad), -EINVAL);
	bad.mode = -1;
	ck_assert_int_eq(new_with(bad), -EINVAL);
	bad = o;
	bad.buffer_size = 4095;
	ck_assert_int_eq(new_with(bad), -EINVAL);
	bad.buffer_size = 16777217;
	ck_assert_int_eq(new_with(bad), -EINVAL);
	bad = o;
	bad.pipe_size = (size_t)-1;
	ck_assert_int_eq(new_with(bad), -EINVAL);
}
END_TEST

START_TEST(options_within_their_bounds_are_taken)
{
	struct sluice_options o = SLUICE_OPTIONS_INIT;

	o.mode = SLUICE_MODE_COPY;
	o.buffer_size = 4096;
	ck_assert_int_eq(new_with(o), 0);
	o.buffer_size = 16777216;
	o.pipe_size = 65536;
	o.pipe_limit = 1;
	ck_assert_int_eq(new_with(o), 0);
}
END_TEST

START_TEST(without_descriptors_there_is_no_context)
{
	struct sluice *s = NULL;
	struct rlimit was, is;
	int fds = open_fds();

	getrlimit(RLIMIT_NOFILE, &was);
	for (rlim_t n = 0; n < 3; n++) {
		int top = dup(0);

		close(top);
		is = was;
		is.rlim_cur = (rlim_t)top + n;
		setrlimit(RLIMIT_NOFILE, &is);
		ck_assert_int_eq(sluice_new(&s, NULL), -EMFILE);
		setrlimit(RLIMIT_NOFILE, &was);
		ck_assert_ptr_null(s);
	}
	ck_assert_int_eq(open_fds(), fds);
}
END_TEST

enum { BAD_NONE, BAD_CLOSED, BAD_PIPE, BAD_UDP, BADS };

static const int errors[BADS] = { -EBADF, -EBADF, -ENOTSOCK, -EPROTOTYPE };

static int bad_fd(int kind)
{
	int fd[2], closed;

	switch (kind) {
	case BAD_UDP:
		return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	case BAD_PIPE:
		ck_assert_int_eq(pipe2(fd, O_CLOEXEC), 0);
		close(fd[1]);
		return fd[0];
	case BAD_CLOSED:
		closed = fcntl(0, F_DUPFD_CLOEXEC, 500);
		close(closed);
		return closed;
	default:
		return -1;
	}
}

/* The good one of the two is the caller's as before: it can be relayed. */
static void expect_unchanged(struct sluice *s, struct call *c)
{
	struct sluice_result r = SLUICE_RESULT_INIT;

	ck_assert_int_eq(sluice_dispatch(s, 0), 0);
	ck_assert_int_eq(sluice_pop(s, &r), 0);
	ck_assert_int_eq(sluice_relay(s, c->side[0], c->side[1], NULL, NULL), 0);
	call_hang_up(c);
	host_pop(s, &r, SOON_MS);
	ck_assert_int_eq(r.end[0], SLUICE_END_FIN);
	ck_assert_int_eq(r.end[1], SLUICE_END_FIN);
	ck_assert_ptr_null(r.userdata);
}

/* _i is what is wrong, and with which of the two. */
START_TEST(what_is_no_stream_socket_is_refused_and_nothing_changes)
{
	int bad = bad_fd(_i / 2), fds = open_fds();
	struct sluice *s = host_open(SLUICE_MODE_SPLICE);
	uint64_t id = 77;
	struct call c;

	call_plug(&c);
	ck_assert_int_eq(_i % 2 ? sluice_relay(s, bad, c.side[1], NULL, &id)
				: sluice_relay(s, c.side[0], bad, NULL, &id),
			 errors[_i / 2]);
	ck_assert_uint_eq(id, 77);
	expect_unchanged(s, &c);
	sluice_free(s);
	ck_assert_int_eq(open_fds(), fds);
}
END_TEST

START_TEST(a_socket_cannot_be_relayed_to_itself_or_twice)
{
	struct sluice_relay_options o = SLUICE_RELAY_OPTIONS_INIT;
	struct sluice *s = host_open(SLUICE_MODE_SPLICE);
	struct call c, other;

	o.timeout_ms = 30; /* it must be forgotten, too */
	call_plug(&c);
	ck_assert_int_eq(sluice_relay(s, c.side[0], c.side[0], &o, NULL),
			 -EEXIST);
	host_serve(s, 60);
	expect_unchanged(s, &c);

	call_make(s, &c, NULL, 0);
	call_plug(&other);
	ck_assert_int_eq(sluice_relay(s, other.side[0], c.side[0], &o, NULL),
			 -EEXIST);
	ck_assert_int_eq(sluice_relay(s, c.side[0], other.side[0], &o, NULL),
			 -EEXIST);
	host_serve(s, 60);
	expect_unchanged(s, &other);
	call_hang_up(&c);
	sluice_free(s);
}
END_TEST

START_TEST(what_is_reserved_must_be_0)
{
	struct sluice_relay_options o = SLUICE_RELAY_OPTIONS_INIT;
	struct sluice *s = host_open(SLUICE_MODE_SPLICE);
	struct call c;

	call_plug(&c);
	o.reserved = 1;
	ck_assert_int_eq(sluice_relay(s, c.side[0], c.side[1], &o, NULL),
			 -EINVAL);
	expect_unchanged(s, &c);
	sluice_free(s);
}
END_TEST

START_TEST(an_unknown_id_cannot_be_cancelled)
{
	struct sluice *s = host_open(SLUICE_MODE_SPLICE);
	struct sluice_result r = SLUICE_RESULT_INIT;
	struct call c;

	ck_assert_int_eq(sluice_cancel(s, 0), -ENOENT);
	ck_assert_int_eq(sluice_cancel(s, 1), -ENOENT);
	call_make(s, &c, NULL, 0);
	ck_assert_int_eq(sluice_cancel(s, c.id + 1), -ENOENT);
	call_hang_up(&c);
	host_pop(s, &r, SOON_MS);
	ck_assert_uint_eq(r.id, c.id);
	ck_assert_int_eq(sluice_cancel(s, c.id), -ENOENT);
	sluice_free(s);
}
END_TEST

START_TEST(there_is_no_result_before_there_is_one)
{
	struct sluice *s = host_open(SLUICE_MODE_SPLICE);
	struct sluice_result r = SLUICE_RESULT_INIT;

	r.id = 5;

	ck_assert_int_eq(sluice_pop(s, &r), 0);
	ck_assert_uint_eq(r.id, 5);
	ck_assert_int_eq(sluice_dispatch(s, 0), 0);
	ck_assert_int_eq(sluice_pop(s, &r), 0);
	sluice_free(s);
	sluice_free(NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("errors");
	TCase *tc = support_case(s, "errors");

	tcase_add_test(tc, options_out_of_their_range_are_refused);
	tcase_add_test(tc, options_within_their_bounds_are_taken);
	tcase_add_test(tc, without_descriptors_there_is_no_context);
	tcase_add_loop_test(
		tc, what_is_no_stream_socket_is_refused_and_nothing_changes, 0,
		2 * BADS);
	tcase_add_test(tc, a_socket_cannot_be_relayed_to_itself_or_twice);
	tcase_add_test(tc, what_is_reserved_must_be_0);
	tcase_add_test(tc, an_unknown_id_cannot_be_cancelled);
	tcase_add_test(tc, there_is_no_result_before_there_is_one);
	return support_main(s);
}
