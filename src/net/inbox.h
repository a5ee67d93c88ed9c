/* SPDX-License-Identifier: MIT */
/*
 * inbox.h - messages from other threads to the owner of a loop.
 */
#ifndef NET_INBOX_H
#define NET_INBOX_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "net/loop.h"

/**
 * struct message - something to be done by another thread, once
 * @node:	in an inbox, from inbox_post() until @fn is called
 * @fn:		called by the owner of the inbox; may free the message
 *
 * Embedded in what it is about, which belongs to the receiver once it is posted.
 */
struct message {
	struct list node;
	void (*fn)(struct message *m);
};

/**
 * struct inbox - messages that wait for the owner of @loop
 * @lock:	for @messages
 * @any:	there may be one; read without the lock
 */
struct inbox {
	struct loop *loop;
	pthread_mutex_t lock;
	struct list messages;
	_Atomic int any;
};

/* What request.run() returns if request_ack() follows later. */
#define REQUEST_PENDING 1

/**
 * struct request - a message that is acknowledged
 * @from:	where the acknowledgement is posted
 * @run:	called in the thread of the receiver. Return: the result, 0 or a
 *		negative errno; or REQUEST_PENDING
 * @done:	called in the thread of the sender, after @run, with @result set
 *
 * Owned by the sender, which must not free or reuse it before @done.
 */
struct request {
	struct message message;
	struct inbox *from;
	int (*run)(struct request *r);
	void (*done)(struct request *r);
	int result;
};

void inbox_init(struct inbox *box, struct loop *loop);
void inbox_fini(struct inbox *box);
void inbox_post(struct inbox *box, struct message *m);
void inbox_run(struct inbox *box);

void request_send(struct request *r, struct inbox *to, struct inbox *from);
void request_ack(struct request *r, int result);

#endif /* NET_INBOX_H */
