/* SPDX-License-Identifier: MIT */
/*
 * resolver.c - resolves names in threads of its own
 *
 * A name is resolved again and again, with exponential backoff, until the owner
 * settles it. A few threads share the names, so that a slow name does not delay
 * the others; they end when no name is left.
 *
 * The owner and each thread hold a reference. Threads are detached: exit does not
 * wait for one that is inside getaddrinfo(3).
 */
#include "daemon/resolver.h"

#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* Names that are resolved at a time. */
#define THREADS_MAX 8

/* Pauses before a name is resolved again. */
#define BACKOFF_MIN_NS (1 * NS_PER_SEC)
#define BACKOFF_MAX_NS (30 * NS_PER_SEC)

/**
 * struct query - one name
 * @node:	in resolver.queries, until it is settled
 * @due_ns:	when it is resolved next; @pause_ns: the pause after that
 * @running:	a thread resolves it; @settled: and frees it then
 * @answered:	@answer has not been taken yet
 */
struct query {
	struct list node;
	uint64_t due_ns, pause_ns;
	bool running, settled, answered;
	struct answer answer;
	uint16_t port;
	char host[];
};

/**
 * struct resolver - names to resolve
 * @lock:	for all else
 * @change:	a name is due, or a thread is to end
 * @loop:	woken when there is an answer; NULL once the owner has left
 * @n_open:	names in @queries
 * @refs:	threads, and the owner
 */
struct resolver {
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct loop *loop;
	struct list queries;
	unsigned n_open, n_threads, refs;
};

static void free_query(struct resolver *r, struct query *q)
{
	list_remove(&q->node);
	r->n_open--;
	pthread_cond_broadcast(&r->change); /* a thread may end */
	free(q->answer.addrs);
	free(q);
}

/* Drops a reference, and the lock. */
static void unref(struct resolver *r)
{
	bool last = !--r->refs;

	pthread_mutex_unlock(&r->lock);
	if (!last)
		return;
	while (!list_empty(&r->queries))
		free_query(r, container_of(r->queries.next, struct query, node));
	pthread_cond_destroy(&r->change);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* The name that is due first, of those that no thread resolves now. */
static struct query *first_due(const struct resolver *r)
{
	struct query *first = NULL;

	list_each (node, &r->queries) {
		struct query *q = container_of(node, struct query, node);

		if (!q->running && (!first || q->due_ns < first->due_ns))
			first = q;
	}
	return first;
}

static void store(struct query *q, const struct answer *got)
{
	free(q->answer.addrs);
	q->answer.err = got->err;
	q->answer.addrs = got->addrs;
	q->answer.n = got->n;
	q->answered = true;
}

/* Resolves a name; the lock is released meanwhile. */
static void look_up(struct resolver *r, struct query *q)
{
	struct answer got = { 0 };

	q->running = true;
	pthread_mutex_unlock(&r->lock);
	got.err = addr_resolve(&got.addrs, &got.n, q->host, q->port);
	pthread_mutex_lock(&r->lock);
	q->running = false;
	store(q, &got);
	if (q->settled) {
		free_query(r, q);
		return;
	}
	q->due_ns = now_ns() + q->pause_ns;
	q->pause_ns *= 2;
	if (q->pause_ns > BACKOFF_MAX_NS)
		q->pause_ns = BACKOFF_MAX_NS;
	if (r->loop)
		loop_wake(r->loop);
}

/* Sleeps until @due_ns, or until something has changed. */
static void wait_until(struct resolver *r, uint64_t due_ns)
{
	struct timespec when = { .tv_sec = (time_t)(due_ns / NS_PER_SEC),
				 .tv_nsec = (long)(due_ns % NS_PER_SEC) };

	(void)pthread_cond_timedwait(&r->change, &r->lock, &when);
}

static void *resolver_main(void *arg)
{
	struct resolver *r = arg;

	pthread_mutex_lock(&r->lock);
	/* No more threads than names. */
	while (r->loop && r->n_threads <= r->n_open) {
		struct query *q = first_due(r);

		if (!q)
			pthread_cond_wait(&r->change, &r->lock);
		else if (q->due_ns > now_ns())
			wait_until(r, q->due_ns);
		else
			look_up(r, q);
	}
	r->n_threads--;
	unref(r);
	return NULL;
}

/* Under the lock. Return: 0, or a negative errno. */
static int start_thread(struct resolver *r)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, resolver_main, r);
	pthread_attr_destroy(&attr);
	if (err)
		return -err;
	(void)pthread_setname_np(thread, "sluice/names");
	r->n_threads++;
	r->refs++;
	return 0;
}

/**
 * resolver_new() - make a resolver that has no names yet
 * @loop:	the owner's, woken when there is something to take
 *
 * The signals of the calling thread's mask are blocked in its threads too.
 *
 * Return: a resolver, or NULL for want of memory.
 */
struct resolver *resolver_new(struct loop *loop)
{
	struct resolver *r = calloc(1, sizeof(*r));
	pthread_condattr_t attr;

	if (!r)
		return NULL;
	r->loop = loop;
	r->refs = 1;
	list_init(&r->queries);
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->change, &attr);
	pthread_condattr_destroy(&attr);
	return r;
}

/* Drops the owner's reference; threads end by themselves. */
void resolver_close(struct resolver *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->loop = NULL;
	pthread_cond_broadcast(&r->change);
	unref(r);
}

/**
 * resolver_ask() - resolve a name until it is settled
 * @id:		the owner's number for it
 *
 * Return: 0; or a negative errno, and it is not resolved.
 */
int resolver_ask(struct resolver *r, unsigned id, const char *host, uint16_t port)
{
	size_t len = strlen(host) + 1;
	struct query *q = calloc(1, sizeof(*q) + len);
	int err = 0;

	if (!q)
		return -ENOMEM;
	memcpy(q->host, host, len);
	q->port = port;
	q->pause_ns = BACKOFF_MIN_NS;
	q->answer.id = id;
	q->answer.first = true;
	pthread_mutex_lock(&r->lock);
	list_append(&r->queries, &q->node);
	r->n_open++;
	if (r->n_threads < THREADS_MAX)
		err = start_thread(r);
	if (err && r->n_threads)
		err = 0; /* the other threads resolve it too */
	if (err)
		free_query(r, q);
	pthread_cond_signal(&r->change);
	pthread_mutex_unlock(&r->lock);
	return err;
}

/* Takes one answer. Return: whether there was one. */
bool resolver_take(struct resolver *r, struct answer *ret)
{
	bool found = false;

	pthread_mutex_lock(&r->lock);
	list_each (node, &r->queries) {
		struct query *q = container_of(node, struct query, node);

		if (!q->answered)
			continue;
		*ret = q->answer;
		q->answer.addrs = NULL;
		q->answer.first = false;
		q->answered = false;
		found = true;
		break;
	}
	pthread_mutex_unlock(&r->lock);
	return found;
}

/* That name is not resolved any more. */
void resolver_settle(struct resolver *r, unsigned id)
{
	pthread_mutex_lock(&r->lock);
	list_each (node, &r->queries) {
		struct query *q = container_of(node, struct query, node);

		if (q->answer.id != id)
			continue;
		if (q->running)
			q->settled = true;
		else
			free_query(r, q);
		break;
	}
	pthread_mutex_unlock(&r->lock);
}

/* Whether all names are settled. */
bool resolver_is_idle(struct resolver *r)
{
	bool idle;

	pthread_mutex_lock(&r->lock);
	idle = !r->n_open;
	pthread_mutex_unlock(&r->lock);
	return idle;
}

/* The message for what addr_resolve() returned. */
const char *resolver_error(int err)
{
	return err < 0 ? strerror(-err) : gai_strerror(-err);
}
