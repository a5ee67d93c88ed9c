/* SPDX-License-Identifier: MIT */
/*
 * inbox.c - messages from other threads to the owner of a loop
 *
 * Messages of one sender are run in the order in which they were posted. A
 * message costs its sender a lock and a write to an eventfd; a thread without
 * messages pays one relaxed load a turn.
 */
#include "net/inbox.h"

#include <assert.h>

#include "base/util.h"

void inbox_init(struct inbox *box, struct loop *loop)
{
	box->loop = loop;
	pthread_mutex_init(&box->lock, NULL);
	list_init(&box->messages);
	atomic_init(&box->any, 0);
}

/* No thread posts to it any more, and all messages have been run. */
void inbox_fini(struct inbox *box)
{
	assert(list_empty(&box->messages));
	pthread_mutex_destroy(&box->lock);
}

/* Has the owner of @box run a message; called by any thread. */
void inbox_post(struct inbox *box, struct message *m)
{
	pthread_mutex_lock(&box->lock);
	list_append(&box->messages, &m->node);
	atomic_store_explicit(&box->any, 1, memory_order_relaxed);
	/* Under the lock: the owner may end, with its loop, once it has run
	 * the message. */
	loop_wake(box->loop);
	pthread_mutex_unlock(&box->lock);
}

/* Runs the messages that have arrived; called by the owner, once a turn. */
void inbox_run(struct inbox *box)
{
	struct list messages;

	if (!atomic_load_explicit(&box->any, memory_order_relaxed))
		return;
	pthread_mutex_lock(&box->lock);
	list_take(&messages, &box->messages);
	atomic_store_explicit(&box->any, 0, memory_order_relaxed);
	pthread_mutex_unlock(&box->lock);
	while (!list_empty(&messages)) {
		struct message *m =
			container_of(messages.next, struct message, node);

		list_remove(&m->node);
		m->fn(m);
	}
}

static void request_done(struct message *m)
{
	struct request *r = container_of(m, struct request, message);

	r->done(r);
}

static void request_run(struct message *m)
{
	struct request *r = container_of(m, struct request, message);
	int result = r->run(r);

	if (result != REQUEST_PENDING)
		request_ack(r, result);
}

/**
 * request_send() - have the owner of @to run a request
 * @from:	inbox of the calling thread, for the acknowledgement
 */
void request_send(struct request *r, struct inbox *to, struct inbox *from)
{
	r->from = from;
	r->message.fn = request_run;
	inbox_post(to, &r->message);
}

/* Acknowledges a request; called by its receiver, once. */
void request_ack(struct request *r, int result)
{
	r->result = result;
	r->message.fn = request_done;
	inbox_post(r->from, &r->message);
}
