/* SPDX-License-Identifier: MIT */
/*
 * connect.c - connects to a target of one or several addresses (RFC 8305)
 *
 * Attempts begin one after the other: the next one when one has failed, or when
 * the last has been pending for a while. The first that connects wins, and the
 * others are closed.
 *
 * The first attempt uses the owner's watch, so that its socket is registered with
 * epoll once, as by a plain connect. Another attempt that wins is moved to that
 * watch. That happens after the batch, since the batch may still hold an event of
 * the socket that had the watch before; for the same reason sockets are closed,
 * and the connector is freed, between batches.
 */
#include "proxy/connect.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/sock.h"

/* Open connections above which forwarding loops are looked for. */
#define LOOP_FLOWS 64

#define DELAY_NS (CONNECT_DELAY_MS * NS_PER_MS)

static void step(struct job *j);

static bool is_pending(const struct attempt *a)
{
	return a->watch->fd >= 0;
}

static enum flow_end why_failed(int err)
{
	return sock_is_shortage(err) ? FLOW_no_resources
	       : err == ETIMEDOUT    ? FLOW_connect_timeout
	       : err == ELOOP	     ? FLOW_connect_self
				     : FLOW_connect_failed;
}

/* Remembers that an address has failed, if others can be tried first; @err is 0
 * if it is only slower than another. */
static void note_failed(struct connector *c, struct target *t, int err,
			uint64_t now)
{
	char text[TARGET_STRLEN];

	if (c->targets->n > 1 && !sock_is_shortage(err) &&
	    target_set_failed(t, now))
		log_info("%s: %s; tried last until it answers",
			 target_format(t, text),
			 err ? strerror(err) : "slower than another address");
}

/* An attempt to connect to @t has failed. */
static void fail(struct connector *c, struct target *t, int err, uint64_t now)
{
	c->error = err;
	c->why = why_failed(err);
	c->last = t;
	note_failed(c, t, err, now);
}

static void close_attempt(struct attempt *a)
{
	outgoing_remove(&a->connector->worker->all->outgoing, &a->outgoing);
	sock_close(a->watch->fd, false);
	a->watch->fd = -1;
	a->error = 0;
	a->connector->n_pending--;
}

static unsigned count_attempts(const struct connector *c)
{
	return c->others ? CONNECT_ATTEMPTS_MAX : 1;
}

static struct attempt *attempt_at(struct connector *c, unsigned i)
{
	return i ? &c->others[i - 1] : &c->first;
}

static void init_attempt(struct connector *c, struct attempt *a,
			 struct watch *watch)
{
	a->connector = c;
	a->own.fd = -1;
	a->watch = watch ? watch : &a->own;
}

/* An attempt that is not pending, or NULL; without memory for others, NULL too. */
static struct attempt *free_attempt(struct connector *c)
{
	if (!is_pending(&c->first))
		return &c->first;
	if (!c->others) {
		c->others = calloc(CONNECT_ATTEMPTS_MAX - 1, sizeof(*c->others));
		for (unsigned i = 1; i < count_attempts(c); i++)
			init_attempt(c, attempt_at(c, i), NULL);
	}
	for (unsigned i = 1; i < count_attempts(c); i++)
		if (!is_pending(attempt_at(c, i)))
			return attempt_at(c, i);
	return NULL;
}

static bool may_begin_another(const struct connector *c)
{
	return c->next < c->targets->n && c->n_pending < CONNECT_ATTEMPTS_MAX;
}

/*
 * Begins one connect. Without a descriptor, it closes free pipes, and gives up
 * the reserve unless another attempt is pending.
 */
static int begin_connect(struct connector *c, const struct addr *to)
{
	struct worker *w = c->worker;
	const struct sockopts *sockopts = &c->options->sockopts;
	int fd = sock_connect(to, sockopts);

	if (fd == -EMFILE && (pipes_close_free(&w->env.pipes) ||
			      (!c->n_pending && worker_use_reserve(w))))
		fd = sock_connect(to, sockopts);
	return fd;
}

/*
 * Whether this connection may be part of a forwarding loop: one was found before,
 * or many connections are open, as in a loop soon. Below that a connection saves
 * two system calls.
 */
static bool may_be_loop(const struct worker *w)
{
	const struct outgoing_table *t = &w->all->outgoing;

	return atomic_load_explicit(&t->loop_found, memory_order_relaxed) ||
	       atomic_load_explicit(&w->load, memory_order_relaxed) * w->all->n >=
		       LOOP_FLOWS;
}

/*
 * Begins to connect to the next address that does not refuse immediately.
 *
 * Return: the attempt; NULL if there is none, or none for now.
 */
static struct attempt *begin_next(struct connector *c, uint64_t now)
{
	uint64_t ms = c->options->connect_timeout_ms;
	struct attempt *a = may_begin_another(c) ? free_attempt(c) : NULL;

	c->next_ns = now + DELAY_NS;
	while (a && c->next < c->targets->n) {
		struct target *t = &c->targets->at[c->order[c->next]];
		int fd = target_get_addr(t, &a->to);

		if (!fd)
			fd = begin_connect(c, &a->to);
		if (fd < 0 && c->n_pending && sock_is_shortage(-fd))
			return NULL; /* tried again after the delay */
		c->next++;
		if (fd < 0) {
			fail(c, t, -fd, now);
			continue;
		}
		c->last = a->target = t;
		a->watch->fd = fd;
		if (may_be_loop(c->worker))
			outgoing_add(&c->worker->all->outgoing, &a->outgoing,
				     fd, &a->to);
		a->due_ns = now + ms * NS_PER_MS;
		c->n_pending++;
		return a;
	}
	return NULL;
}

static void attempt_ready(struct attempt *a);

static void own_ready(struct watch *w)
{
	attempt_ready(container_of(w, struct attempt, own));
}

static int watch_attempt(struct attempt *a)
{
	struct connector *c = a->connector;
	bool own = a->watch == &a->own;

	return loop_watch(&c->worker->loop, a->watch, a->watch->fd, LOOP_SOCKET,
			  own ? own_ready : c->ready);
}

static void tick(struct timer *t)
{
	struct connector *c = container_of(t, struct connector, timer);

	loop_soon(&c->worker->loop, &c->job);
}

/* Has step() run when the next attempt is due, or one times out. */
static int set_timer(struct connector *c)
{
	uint64_t due_ns = UINT64_MAX;

	if (may_begin_another(c))
		due_ns = c->next_ns;
	for (unsigned i = 0; i < count_attempts(c); i++) {
		const struct attempt *a = attempt_at(c, i);

		if (is_pending(a) && a->due_ns < due_ns)
			due_ns = a->due_ns;
	}
	return loop_timer(&c->worker->loop, &c->timer, due_ns, tick);
}

/* Closes pending attempts, but for the one that has won. */
static void close_others(struct connector *c)
{
	for (unsigned i = 0; i < count_attempts(c); i++) {
		struct attempt *a = attempt_at(c, i);

		/* @won uses the owner's watch, which may be freed by now. */
		if (a != c->won && is_pending(a))
			close_attempt(a);
	}
}

static void unlink_all(struct connector *c)
{
	loop_untimer(&c->worker->loop, &c->timer);
	list_remove(&c->job.node);
}

/* The owner has moved the outgoing entry of @won by now, if it needs it. */
static void connector_free(struct connector *c)
{
	if (c->won)
		outgoing_remove(&c->worker->all->outgoing, &c->won->outgoing);
	free(c->others);
	free(c);
}

/* Calls back with the outcome; no attempt is pending. */
static void report(struct connector *c)
{
	unlink_all(c);
	c->done(c, c->owner);
	connector_free(c);
}

static void give_up(struct connector *c)
{
	close_others(c);
	report(c);
}

/* No memory, or no room in the epoll set. */
static void fail_for_resources(struct connector *c, int err)
{
	c->error = -err;
	c->why = FLOW_no_resources;
}

/*
 * An address that was tried before @won and has not answered is slow: it is tried
 * last from now on, like one that has failed.
 */
static void learn(struct connector *c)
{
	const struct attempt *won = c->won;
	uint64_t now;

	target_clear_failed(won->target);
	if (c->n_pending == 1)
		return;
	now = now_ns();
	for (unsigned i = 0; i < count_attempts(c); i++) {
		struct attempt *a = attempt_at(c, i);

		if (is_pending(a) && a->due_ns < won->due_ns)
			note_failed(c, a->target, a->error, now);
	}
}

/* Between batches: the outcome is @won. */
static void finish(struct connector *c)
{
	struct watch *first = c->first.watch, *w = c->won->watch;
	int err = 0;

	close_others(c);
	if (w != first)
		err = loop_move(&c->worker->loop, first, w, LOOP_SOCKET,
				c->ready);
	if (err) {
		fail_for_resources(c, err);
		close_attempt(c->won);
		c->won = NULL;
	}
	report(c);
}

/* @err: what has become of the connection since, as a positive errno. */
static void win(struct attempt *a, int err)
{
	struct connector *c = a->connector;

	c->won = a;
	c->last = a->target;
	c->error = err;
	learn(c);
	if (a->watch != &a->own && c->n_pending == 1) {
		report(c);
		return;
	}
	if (a->watch != &a->own) {
		loop_untimer(&c->worker->loop, &c->timer);
		c->done(c, c->owner);
		c->done = NULL;
	}
	loop_soon(&c->worker->loop, &c->job);
}

/* epoll has reported the socket of an attempt; inside a batch. */
static void attempt_ready(struct attempt *a)
{
	struct connector *c = a->connector;
	const struct watch *w = a->watch;
	int err = 0;

	if (c->won || a->error || !(w->ready & LOOP_WRITABLE))
		return;
	if (w->ready & (EPOLLERR | EPOLLHUP))
		err = -sock_connected(w->fd);
	/* With these two it was connected, and has been reset since. */
	if (err == ECONNRESET || err == EPIPE) {
		win(a, err);
		return;
	}
	if (!err && a->target->local && sock_is_self(w->fd, &a->to))
		err = ELOOP;
	if (!err) {
		win(a, 0);
		return;
	}
	a->error = err;
	loop_soon(&c->worker->loop, &c->job);
}

/* Closes attempts that have failed or timed out. Return: whether there was any. */
static bool reap(struct connector *c, uint64_t now)
{
	bool any = false;

	for (unsigned i = 0; i < count_attempts(c); i++) {
		struct attempt *a = attempt_at(c, i);

		if (!is_pending(a))
			continue;
		if (!a->error && a->due_ns <= now)
			a->error = ETIMEDOUT;
		if (!a->error)
			continue;
		fail(c, a->target, a->error, now);
		close_attempt(a);
		any = true;
	}
	return any;
}

/* Begins what is due. Return: 0, or a negative errno. */
static int go_on(struct connector *c)
{
	uint64_t now = now_ns();
	struct attempt *a = NULL;
	int err = 0;

	if (reap(c, now) || c->next_ns <= now)
		a = begin_next(c, now);
	if (a)
		err = watch_attempt(a);
	if (err && c->n_pending > 1) { /* tried again after the delay */
		close_attempt(a);
		c->next--;
		err = 0;
	}
	if (!err && c->n_pending)
		err = set_timer(c);
	return err;
}

/* Between batches, whenever something has happened. */
static void step(struct job *j)
{
	struct connector *c = container_of(j, struct connector, job);
	int err;

	if (!c->done) { /* called back already: the others are left */
		close_others(c);
		connector_free(c);
		return;
	}
	if (c->won) {
		finish(c);
		return;
	}
	err = go_on(c);
	if (err)
		fail_for_resources(c, err);
	if (err || !c->n_pending)
		give_up(c);
}

/**
 * connector_new() - begin to connect to the first address that does not refuse
 * @w:		the calling thread's
 * @options:	of the rule; they and @targets must outlive the connector
 * @watch:	the owner's, with no descriptor: it gets the socket, which is the
 *		owner's to close in the end
 * @now:	now_ns()
 *
 * Return: a connector that waits for connector_run(), or NULL for want of
 *	memory.
 */
struct connector *connector_new(struct worker *w,
				const struct rule_options *options,
				struct target_set *targets, struct watch *watch,
				uint64_t now)
{
	struct connector *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->worker = w;
	c->options = options;
	c->targets = targets;
	c->job.fn = step;
	list_init(&c->job.node);
	init_attempt(c, &c->first, watch);
	target_order(targets, now, c->order);
	(void)begin_next(c, now);
	return c;
}

/**
 * connector_run() - go on with it
 * @w:		worker of the calling thread, which runs it from now on
 * @ready:	for the owner's watch: calls connector_ready()
 * @done:	called with the outcome, perhaps before this returns: either c->won,
 *		whose socket is in the owner's watch, or c->why it failed
 */
void connector_run(struct connector *c, struct worker *w,
		   void (*ready)(struct watch *w),
		   void (*done)(struct connector *c, void *owner), void *owner)
{
	int err = 0;

	c->worker = w;
	c->ready = ready;
	c->done = done;
	c->owner = owner;
	if (c->n_pending)
		err = set_timer(c);
	if (c->n_pending && !err)
		err = watch_attempt(&c->first);
	if (err)
		fail_for_resources(c, err);
	if (err || !c->n_pending)
		give_up(c);
}

/* The owner's watch has become ready. */
void connector_ready(struct connector *c)
{
	attempt_ready(&c->first);
}

/**
 * connector_recheck() - check whether an attempt has connected by now
 *
 * For an owner that cannot wait for epoll to report it. Between batches.
 *
 * Return: whether one has; then @done has been called.
 */
bool connector_recheck(struct connector *c)
{
	for (unsigned i = 0; !c->won && i < count_attempts(c); i++) {
		struct attempt *a = attempt_at(c, i);

		if (is_pending(a) && !a->error && sock_is_writable(a->watch->fd)) {
			c->won = a;
			c->last = a->target;
			c->error = 0;
		}
	}
	if (!c->won)
		return false;
	finish(c);
	return true;
}

/* Ends it without an outcome; the socket in the owner's watch stays open. Between
 * batches. */
void connector_cancel(struct connector *c)
{
	c->won = &c->first;
	close_others(c);
	unlink_all(c);
	connector_free(c);
}
