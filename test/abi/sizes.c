/* SPDX-License-Identifier: MIT */
/*
 * Programs that are older or newer than the library: their structs are shorter
 * or longer. Each struct lies directly before a page that cannot be accessed, so
 * that a library that goes beyond its size is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/host.h"

#define WORD	   sizeof(size_t)
#define SIZE_LIMIT 4096 /* as sluice.h says */
#define FILLER	   0xa5

/* What a caller can have forgotten to set, and what is said to that. */
static const struct {
	size_t size;
	int err;
} bad_sizes[] = {
	{ 0, -EINVAL },	       { 1, -EINVAL },
	{ WORD - 1, -EINVAL }, { SIZE_LIMIT + 1, -E2BIG },
	{ SIZE_MAX, -E2BIG },
};

#define BAD_SIZES (int)(sizeof(bad_sizes) / sizeof(bad_sizes[0]))

/* Return: @size bytes, beginning with @size and then as those at @from, followed
 * by a page that cannot be accessed. What @from does not have is 0. */
static void *before_wall(const void *from, size_t known, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_int_eq(mprotect(p + page, page, PROT_NONE), 0);
	p += page - size;
	memcpy(p, from, size < known ? size : known);
	memcpy(p, &size, sizeof(size));
	return p;
}

static int new_with(const struct sluice_options *o)
{
	struct sluice *s = NULL;
	int err = sluice_new(&s, o);

	ck_assert_int_eq(!s, err != 0);
	sluice_free(s);
	return err;
}

START_TEST(options_of_an_older_program_end_at_their_size)
{
	struct sluice_options o = SLUICE_OPTIONS_INIT;

	for (size_t size = WORD; size <= sizeof(o); size += WORD)
		ck_assert_int_eq(new_with(before_wall(&o, sizeof(o), size)), 0);
	/* What lies behind them is not read, what they have is. */
	o.buffer_size = 1;
	ck_assert_int_eq(new_with(&o), -EINVAL);
	o.size = offsetof(struct sluice_options, buffer_size);
	ck_assert_int_eq(new_with(&o), 0);
	o.pipe_size = 1;
	ck_assert_int_eq(new_with(&o), -EINVAL);
	o.size = offsetof(struct sluice_options, pipe_size);
	ck_assert_int_eq(new_with(&o), 0);
	o.mode = SLUICE_MODE_AUTO + 1;
	ck_assert_int_eq(new_with(&o), -EINVAL);
	o.size = offsetof(struct sluice_options, mode);
	ck_assert_int_eq(new_with(&o), 0);
}
END_TEST

START_TEST(options_of_a_newer_program_are_taken_if_what_is_new_is_0)
{
	const struct sluice_options o = SLUICE_OPTIONS_INIT;
	const size_t sizes[] = { sizeof(o) + WORD, SIZE_LIMIT };

	for (int i = 0; i < 2; i++) {
		unsigned char *p = before_wall(&o, sizeof(o), sizes[i]);

		ck_assert_int_eq(new_with((void *)p), 0);
		for (size_t at = sizeof(o); at < sizes[i]; at++) {
			p[at] = 1;
			ck_assert_int_eq(new_with((void *)p), -E2BIG);
			p[at] = 0;
		}
	}
}
END_TEST

/* The size that @o has cannot be its size: nothing behind it may be read. */
START_TEST(options_whose_size_was_not_set_are_refused)
{
	struct sluice_options *o;
	size_t none[1] = { 0 };

	o = before_wall(none, sizeof(none), sizeof(none));
	o->size = bad_sizes[_i].size;
	ck_assert_int_eq(new_with(o), bad_sizes[_i].err);
}
END_TEST

static int relay_with(struct sluice *s, const struct call *c, const void *o)
{
	return sluice_relay(s, c->side[0], c->side[1], o, NULL);
}

/* @c can be relayed, and nothing else has been. */
static void expect_relay(struct sluice *s, struct call *c, const void *o,
			 const void *userdata)
{
	struct sluice_result r = SLUICE_RESULT_INIT;

	ck_assert_int_eq(relay_with(s, c, o), 0);
	call_hang_up(c);
	host_pop(s, &r, SOON_MS);
	ck_assert_ptr_eq(r.userdata, userdata);
	ck_assert_int_eq(r.why, SLUICE_WHY_ENDED);
	ck_assert_int_eq(sluice_pop(s, &r), 0);
}

START_TEST(relay_options_of_an_older_program_end_at_their_size)
{
	struct sluice_relay_options o = SLUICE_RELAY_OPTIONS_INIT;
	struct sluice *s = host_open(SLUICE_MODE_SPLICE);
	struct call c;

	o.userdata = &c;
	o.timeout_ms = 600000;
	for (size_t size = WORD; size <= sizeof(o); size += WORD) {
		call_plug(&c);
		expect_relay(s, &c, before_wall(&o, sizeof(o), size),
			     size > WORD ? &c : NULL);
	}
	/* What lies behind them is not read. */
	o.reserved = 1;
	o.size = offsetof(struct sluice_relay_options, reserved);
	call_plug(&c);
	expect_relay(s, &c, &o, &c);
	sluice_free(s);
}
END_TEST

START_TEST(relay_options_of_a_newer_program_are_taken_if_what_is_new_is_0)
{
	struct sluice_relay_options o = SLUICE_RELAY_OPTIONS_INIT;
	struct sluice *s = host_open(SLUICE_MODE_SPLICE);
	const size_t size = sizeof(o) + 2 * WORD;
	unsigned char *p;
	struct call c;

	o.userdata = &c;
	p = before_wall(&o, sizeof(o), size);
	call_plug(&c);
	for (size_t at = sizeof(o); at < size; at++) {
		p[at] = 1;
		ck_assert_int_eq(relay_with(s, &c, p), -E2BIG);
		p[at] = 0;
	}
	expect_relay(s, &c, p, &c);
	sluice_free(s);
}
END_TEST

START_TEST(relay_options_whose_size_was_not_set_are_refused)
{
	struct sluice *s = host_open(SLUICE_MODE_SPLICE);
	struct sluice_relay_options *o;
	size_t none[1] = { 0 };
	struct call c;

	o = before_wall(none, sizeof(none), sizeof(none));
	o->size = bad_sizes[_i].size;
	call_plug(&c);
	ck_assert_int_eq(relay_with(s, &c, o), bad_sizes[_i].err);
	expect_relay(s, &c, NULL, NULL);
	sluice_free(s);
}
END_TEST

/* Dispatches until the library has closed both sockets, and pops no result. */
static void serve_to_the_end(struct sluice *s, const struct call *c)
{
	while (fcntl(c->side[0], F_GETFD) >= 0 ||
	       fcntl(c->side[1], F_GETFD) >= 0) {
		ck_assert_int_eq(peer_wait(sluice_fd(s), POLLIN, SOON_MS),
				 POLLIN);
		ck_assert_int_eq(sluice_dispatch(s, 0), 0);
	}
}

/* A relay that is over and not popped: three bytes one way, one the other.
 * @all is its result, but for the size. */
static struct sluice *make_result(struct sluice_result *all)
{
	struct sluice *s = host_open(SLUICE_MODE_SPLICE);
	struct call c;

	call_make(s, &c, all, 0);
	ck_assert_int_eq(peer_send_all(c.peer[0], "abc", 3, SOON_MS), 0);
	ck_assert_int_eq(peer_send_all(c.peer[1], "d", 1, SOON_MS), 0);
	shutdown(c.peer[0], SHUT_WR);
	shutdown(c.peer[1], SHUT_WR);
	serve_to_the_end(s, &c);
	call_hang_up(&c);

	memset(all, 0, sizeof(*all));
	all->userdata = all;
	all->id = c.id;
	all->why = SLUICE_WHY_ENDED;
	all->end[0] = all->end[1] = SLUICE_END_FIN;
	all->read[0] = all->delivered[0] = all->by_pipe[0] = 3;
	all->read[1] = all->delivered[1] = all->by_pipe[1] = 1;
	return s;
}

/* Pops into @size bytes, in which @known bytes must then be those of @all. */
static void expect_result(size_t size, size_t known)
{
	struct sluice_result all;
	struct sluice *s = make_result(&all);
	unsigned char filler[SIZE_LIMIT], *p;
	const unsigned char *want = (const unsigned char *)&all;

	memset(filler, FILLER, sizeof(filler));
	p = before_wall(filler, sizeof(filler), size);
	all.size = size;
	ck_assert_int_eq(sluice_pop(s, (void *)p), 1);
	ck_assert_mem_eq(p, want, known);
	for (size_t at = known; at < size; at++)
		ck_assert_uint_eq(p[at], 0);
	ck_assert_int_eq(sluice_pop(s, (void *)p), 0);
	sluice_free(s);
}

START_TEST(the_result_of_an_older_program_is_filled_to_its_size)
{
	for (size_t size = WORD; size <= sizeof(struct sluice_result);
	     size += WORD)
		expect_result(size, size);
}
END_TEST

START_TEST(in_the_result_of_a_newer_program_what_is_new_is_0)
{
	const size_t known = sizeof(struct sluice_result);

	expect_result(known + WORD, known);
	expect_result(SIZE_LIMIT, known);
}
END_TEST

START_TEST(a_result_whose_size_was_not_set_is_refused_and_none_is_lost)
{
	struct sluice_result all, r = SLUICE_RESULT_INIT, *bad;
	struct sluice *s = make_result(&all);
	struct sluice *empty = host_open(SLUICE_MODE_SPLICE);
	size_t none[1] = { 0 };

	bad = before_wall(none, sizeof(none), sizeof(none));
	bad->size = bad_sizes[_i].size;
	ck_assert_int_eq(sluice_pop(s, bad), bad_sizes[_i].err);
	ck_assert_int_eq(sluice_pop(empty, bad), bad_sizes[_i].err);
	ck_assert_uint_eq(bad->size, bad_sizes[_i].size);
	ck_assert_int_eq(sluice_pop(s, &r), 1);
	ck_assert_uint_eq(r.id, all.id);
	sluice_free(empty);
	sluice_free(s);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sizes");
	TCase *tc = support_case(s, "sizes");

	tcase_add_test(tc, options_of_an_older_program_end_at_their_size);
	tcase_add_test(tc,
		       options_of_a_newer_program_are_taken_if_what_is_new_is_0);
	tcase_add_loop_test(tc, options_whose_size_was_not_set_are_refused, 0,
			    BAD_SIZES);
	tcase_add_test(tc, relay_options_of_an_older_program_end_at_their_size);
	tcase_add_test(
		tc,
		relay_options_of_a_newer_program_are_taken_if_what_is_new_is_0);
	tcase_add_loop_test(tc, relay_options_whose_size_was_not_set_are_refused,
			    0, BAD_SIZES);
	tcase_add_test(tc, the_result_of_an_older_program_is_filled_to_its_size);
	tcase_add_test(tc, in_the_result_of_a_newer_program_what_is_new_is_0);
	tcase_add_loop_test(
		tc, a_result_whose_size_was_not_set_is_refused_and_none_is_lost,
		0, BAD_SIZES);
	return support_main(s);
}
