/* SPDX-License-Identifier: MIT */
/*
 * connect.h - connects to a target of one or several addresses (RFC 8305).
 */
#ifndef PROXY_CONNECT_H
#define PROXY_CONNECT_H

#include "proxy/outgoing.h"
#include "proxy/stats.h"
#include "proxy/target.h"
#include "net/loop.h"

struct worker;
struct connector;

/* Attempts that are under way at a time. */
#define CONNECT_ATTEMPTS_MAX 4

/* How long an attempt is under way alone, before the next one begins. */
#define CONNECT_DELAY_MS 250

/**
 * struct attempt - one connect that is under way, or room for one
 * @watch:	of its socket; -1 is its descriptor if none is under way. That of
 *		the first attempt is the owner's, of the others it is @own
 * @to:		what it connects to, by an address of @target
 * @due_ns:	when it is given up
 * @error:	positive errno: it has failed, and is cleaned up after the batch
 * @outgoing:	entered before its other end can be accepted by this worker
 */
struct attempt {
	struct connector *connector;
	struct watch *watch, own;
	struct target *target;
	struct addr to;
	uint64_t due_ns;
	int error;
	struct outgoing outgoing;
};

/**
 * struct connector - finds an address of a target that answers
 * @worker:	who runs it
 * @order:	places in @targets, in the order to try; @next is the next one
 * @next_ns:	when that is tried, whatever the ones under way do
 * @n_pending:	attempts under way, those that have failed in this batch included
 * @won:	the attempt that has connected
 * @last:	the address that was tried last; after success, that of @won
 * @error:	positive errno of the last attempt that failed; after success
 *		what has become of the connection since, or 0
 * @why:	after failure, what it comes to
 * @ready:	callback of the owner's watch, which calls connector_ready()
 * @done:	called once, with the outcome; the owner forgets the connector then
 */
struct connector {
	struct worker *worker;
	struct target_set *targets;
	struct job job;
	struct timer timer;
	struct attempt attempt[CONNECT_ATTEMPTS_MAX];
	uint8_t order[TARGETS_MAX];
	unsigned next, n_pending;
	uint64_t next_ns;
	struct attempt *won;
	const struct target *last;
	int error;
	enum flow_end why;
	void (*ready)(struct watch *w);
	void (*done)(struct connector *c, void *owner);
	void *owner;
};

struct connector *connector_new(struct worker *w, struct target_set *targets,
				struct watch *watch, uint64_t now);
void connector_run(struct connector *c, struct worker *w,
		   void (*ready)(struct watch *w),
		   void (*done)(struct connector *c, void *owner), void *owner);
void connector_ready(struct connector *c);
bool connector_recheck(struct connector *c);
void connector_cancel(struct connector *c);

#endif /* PROXY_CONNECT_H */
