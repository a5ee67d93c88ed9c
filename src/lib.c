/* SPDX-License-Identifier: MIT */
/*
 * lib.c - include/sluice.h in terms of relay/
 *
 * The only file that sees both the public header and the private ones.
 */
#include "sluice.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"
#include "net/sock.h"
#include "relay/defaults.h"
#include "relay/relay.h"

#define PUBLIC __attribute__((visibility("default")))

/* More than any struct of sluice.h will have: a page, as the kernel's limit. */
#define STRUCT_SIZE_MAX 4096

/* A relay, and after it is over its result: in one list or the other. */
struct run {
	struct list node;
	struct relay relay;
	struct sluice *sluice;
	struct timer limit;
	uint64_t id;
	void *userdata;
	int why;
};

struct sluice {
	struct loop loop;
	struct relay_env env;
	struct list running, over;
	uint64_t last_id;
};

/*
 * What follows the last member must not be padding: a member that is added
 * there would leave the size as it is, and be read from the padding of an older
 * program.
 */
#define HAS_NO_TAIL(type, last) \
	(offsetof(type, last) + sizeof(((type *)0)->last) == sizeof(type))

static_assert(HAS_NO_TAIL(struct sluice_options, buffer_size), "padding");
static_assert(HAS_NO_TAIL(struct sluice_relay_options, reserved), "padding");
static_assert(HAS_NO_TAIL(struct sluice_result, by_pipe), "padding");

/**
 * struct_size() - read the size that a caller's struct begins with
 *
 * Return: 0; -EINVAL or -E2BIG for one that was never set.
 */
static int struct_size(const void *given, size_t *size)
{
	memcpy(size, given, sizeof(*size));
	return *size < sizeof(*size)	 ? -EINVAL
	       : *size > STRUCT_SIZE_MAX ? -E2BIG
					 : 0;
}

/**
 * struct_get() - read options whose caller may know fewer or more members
 * @to:		of @known bytes
 *
 * As the kernel's copy_struct_from_user(): members that the caller lacks are 0,
 * and what only the caller knows must be 0.
 *
 * Return: 0, or a negative errno.
 */
static int struct_get(void *to, size_t known, const void *given)
{
	const unsigned char *bytes = given;
	size_t size;
	int err = struct_size(given, &size);

	if (err)
		return err;
	for (size_t i = known; i < size; i++)
		if (bytes[i])
			return -E2BIG;
	memset(to, 0, known);
	memcpy(to, given, min_size(size, known));
	return 0;
}

/* Fills in the @size bytes of a caller's struct; what we do not know is 0. */
static void struct_put(void *to, size_t size, const void *from, size_t known)
{
	memset(to, 0, size);
	memcpy(to, from, min_size(size, known));
}

static int options_read(struct sluice_options *o,
			const struct sluice_options *given)
{
	int err = 0;

	*o = (struct sluice_options)SLUICE_OPTIONS_INIT;
	if (given)
		err = struct_get(o, sizeof(*o), given);
	if (err)
		return err;
	if (!o->pipe_size)
		o->pipe_size = DEFAULT_PIPE_SIZE;
	if (!o->buffer_size)
		o->buffer_size = DEFAULT_BUFFER_SIZE;
	if (o->mode < SLUICE_MODE_SPLICE || o->mode > SLUICE_MODE_AUTO)
		return -EINVAL;
	if (o->pipe_size < PIPE_SIZE_MIN || o->pipe_size > PIPE_SIZE_MAX ||
	    o->buffer_size < BUFFER_SIZE_MIN || o->buffer_size > BUFFER_SIZE_MAX)
		return -EINVAL;
	if (!o->pipe_limit) {
		unsigned quota = pipes_quota(o->pipe_size) / 4;

		o->pipe_limit = quota < DEFAULT_CONTEXT_PIPES
					? quota
					: DEFAULT_CONTEXT_PIPES;
	}
	return 0;
}

static enum relay_mode relay_mode(int mode)
{
	return mode == SLUICE_MODE_COPY	  ? RELAY_COPY
	       : mode == SLUICE_MODE_AUTO ? RELAY_AUTO
					  : RELAY_SPLICE;
}

static int context_init(struct sluice *s, const struct sluice_options *o)
{
	int err = loop_init(&s->loop);

	if (err)
		return err;
	err = relay_env_init(&s->env, &s->loop, o->buffer_size, o->pipe_size,
			     o->pipe_limit);
	if (err) {
		loop_fini(&s->loop);
		return err;
	}
	s->env.mode = relay_mode(o->mode);
	list_init(&s->running);
	list_init(&s->over);
	return 0;
}

PUBLIC int sluice_new(struct sluice **ret, const struct sluice_options *given)
{
	struct sluice_options o;
	struct sluice *s;
	int err = options_read(&o, given);

	if (err)
		return err;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	err = context_init(s, &o);
	if (err) {
		free(s);
		return err;
	}
	*ret = s;
	return 0;
}

PUBLIC int sluice_fd(const struct sluice *s)
{
	return s->loop.epfd;
}

static void run_done(struct relay *r)
{
	struct run *run = container_of(r, struct run, relay);
	struct sluice *s = run->sluice;
	bool reset = !relay_is_clean(r);

	loop_untimer(&s->loop, &run->limit);
	for (int i = 0; i < 2; i++) {
		/* The caller may have a duplicate, which would go on (K33). */
		loop_unwatch(&s->loop, &r->side[i].watch);
		sock_close(r->side[i].watch.fd, reset);
	}
	list_remove(&run->node);
	list_append(&s->over, &run->node);
}

static void run_free(struct run *run)
{
	assert(relay_is_unlinked(&run->relay));
	assert(!timer_is_set(&run->limit));
	free(run);
}

static void run_stop(struct run *run, enum sluice_why why)
{
	if (run->why == SLUICE_WHY_ENDED)
		run->why = (int)why;
	relay_stop(&run->relay);
}

static void run_timeout(struct timer *t)
{
	run_stop(container_of(t, struct run, limit), SLUICE_WHY_TIMEOUT);
}

/* Whether a descriptor can be relayed, and whether it is TCP. Return: 0, or a
 * negative errno. */
static int socket_check(int fd, bool *local)
{
	socklen_t len = sizeof(int);
	int type, err;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0)
		return -errno;
	if (type != SOCK_STREAM)
		return -EPROTOTYPE;
	err = sock_nonblock(fd);
	if (!err)
		err = sock_prepare(fd);
	/* Not TCP: nothing to set. */
	*local = err == -EOPNOTSUPP || err == -ENOPROTOOPT;
	return *local ? 0 : err;
}

static int relay_options_read(struct sluice_relay_options *o,
			      const struct sluice_relay_options *given)
{
	int err = 0;

	*o = (struct sluice_relay_options)SLUICE_RELAY_OPTIONS_INIT;
	if (given)
		err = struct_get(o, sizeof(*o), given);
	return err ? err : o->reserved ? -EINVAL : 0;
}

static int run_watch(struct run *run, int a, int b)
{
	struct loop *loop = &run->sluice->loop;
	struct relay *r = &run->relay;
	int err;

	err = loop_watch(loop, &r->side[0].watch, a, LOOP_SOCKET, pump_ready);
	if (err)
		return err;
	err = loop_watch(loop, &r->side[1].watch, b, LOOP_SOCKET, pump_ready);
	if (err)
		loop_unwatch(loop, &r->side[0].watch);
	return err;
}

static int run_begin(struct run *run, int a, int b, unsigned timeout_ms)
{
	struct sluice *s = run->sluice;
	int err = 0;

	relay_init(&run->relay, &s->env);
	if (timeout_ms)
		err = loop_timer(&s->loop, &run->limit,
				 now_ns() + timeout_ms * NS_PER_MS, run_timeout);
	if (err)
		return err;
	run->relay.side[0].read_before = sock_read_before(a);
	run->relay.side[1].read_before = sock_read_before(b);
	err = run_watch(run, a, b);
	if (err)
		loop_untimer(&s->loop, &run->limit);
	return err;
}

PUBLIC int sluice_relay(struct sluice *s, int a, int b,
			const struct sluice_relay_options *given, uint64_t *id)
{
	struct sluice_relay_options o;
	struct run *run;
	bool local[2] = { false, false };
	int err = relay_options_read(&o, given);

	if (!err)
		err = socket_check(a, &local[0]);
	if (!err)
		err = socket_check(b, &local[1]);
	if (err)
		return err;
	run = calloc(1, sizeof(*run));
	if (!run)
		return -ENOMEM;
	run->sluice = s;
	run->userdata = o.userdata;
	err = run_begin(run, a, b, o.timeout_ms);
	run->relay.side[0].local = local[0];
	run->relay.side[1].local = local[1];
	if (err) {
		run_free(run);
		return err;
	}
	run->id = ++s->last_id;
	list_append(&s->running, &run->node);
	relay_start(&run->relay, run_done);
	/* The first turn is a job: make sluice_fd() tell of it. */
	loop_wake(&s->loop);
	if (id)
		*id = run->id;
	return 0;
}

PUBLIC int sluice_cancel(struct sluice *s, uint64_t id)
{
	list_each (node, &s->running) {
		struct run *run = container_of(node, struct run, node);

		if (run->id != id)
			continue;
		run_stop(run, SLUICE_WHY_CANCELED);
		loop_wake(&s->loop);
		return 0;
	}
	return -ENOENT;
}

PUBLIC int sluice_dispatch(struct sluice *s, int timeout_ms)
{
	int err = loop_turn(&s->loop, timeout_ms);

	/* What is in doubt or was put off is invisible to epoll: keep
	 * sluice_fd() honest. */
	recheck_turn(&s->loop.recheck, true);
	if (loop_pending(&s->loop))
		loop_wake(&s->loop);
	return err;
}

static int public_end(enum relay_end end)
{
	static const int ends[] = {
		[RELAY_END_OPEN] = SLUICE_END_OPEN,
		[RELAY_END_FIN] = SLUICE_END_FIN,
		[RELAY_END_RESET] = SLUICE_END_RESET,
		[RELAY_END_ERROR] = SLUICE_END_ERROR,
	};
	static_assert(array_size(ends) == RELAY_END_ERROR + 1, "each end's");

	return ends[end];
}

/* All that we know, with padding of 0: it is copied as bytes. */
static void result_fill(struct sluice_result *result, const struct run *run)
{
	memset(result, 0, sizeof(*result));
	result->userdata = run->userdata;
	result->id = run->id;
	result->why = run->why;
	for (unsigned i = 0; i < 2; i++) {
		const struct lane *l = &run->relay.lane[i];

		result->end[i] = public_end(relay_how(&run->relay, i));
		result->error[i] = run->relay.side[i].error;
		result->read[i] = l->read;
		result->delivered[i] = l->delivered;
		result->by_pipe[i] = l->by_pipe;
	}
}

PUBLIC int sluice_pop(struct sluice *s, struct sluice_result *result)
{
	struct sluice_result all;
	struct run *run;
	size_t size;
	int err = struct_size(result, &size);

	if (err)
		return err;
	if (list_empty(&s->over))
		return 0;

	run = container_of(s->over.next, struct run, node);
	result_fill(&all, run);
	all.size = size;
	struct_put(result, size, &all, sizeof(all));
	list_remove(&run->node);
	run_free(run);
	return 1;
}

PUBLIC void sluice_free(struct sluice *s)
{
	struct sluice_result ignored = SLUICE_RESULT_INIT;

	if (!s)
		return;
	list_each (node, &s->running)
		run_stop(container_of(node, struct run, node),
			 SLUICE_WHY_CANCELED);
	while (!list_empty(&s->running))
		(void)loop_turn(&s->loop, 0);
	while (sluice_pop(s, &ignored) > 0)
		;
	relay_env_fini(&s->env);
	loop_fini(&s->loop);
	free(s);
}
