/* SPDX-License-Identifier: MIT */
/*
 * connect.h - connects to a target of one or several addresses (RFC 8305).
 */
#ifndef PROXY_CONNECT_H
#define PROXY_CONNECT_H

#include "proxy/target.h"
#include "proxy/worker.h"

struct connector;

/* Attempts pending at a time. */
#define CONNECT_ATTEMPTS_MAX 4

/* How long an attempt is pending alone, before the next one begins. */
#define CONNECT_DELAY_MS 250

/**
 * struct attempt - one connect, or room for one
 * @watch:	of its socket; fd is -1 unless a connect is pending. The first
 *		attempt uses the owner's watch, the others use @own
 * @to:		the address that it connects to, one of @target
 * @due_ns:	when it times out
 * @error:	positive errno: it has failed, and is closed after the batch
 * @outgoing:	added before this worker can accept its other end
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
 * struct connector - connects to the first address of a target that answers
 * @worker:	runs it
 * @options:	of the rule
 * @first:	the attempt that most connectors need; @others: NULL until a
 *		second one begins
 * @order:	places in @targets, in the order to try; @next is the next one
 * @next_ns:	when that is tried, whatever becomes of the pending attempts
 * @n_pending:	pending attempts, those included that failed in this batch
 * @won:	the attempt that has connected
 * @last:	the address that was tried last; after success, that of @won
 * @error:	positive errno of the last attempt that failed; after success,
 *		of the connection since then, or 0
 * @why:	after failure, the reason
 * @ready:	callback of the owner's watch, which calls connector_ready()
 * @done:	called once, with the outcome; the connector is then no longer the
 *		owner's
 */
struct connector {
	struct worker *worker;
	const struct rule_options *options;
	struct target_set *targets;
	struct job job;
	struct timer timer;
	struct attempt first, *others;
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

struct connector *connector_new(struct worker *w,
				const struct rule_options *options,
				struct target_set *targets, struct watch *watch,
				uint64_t now);
void connector_run(struct connector *c, struct worker *w,
		   void (*ready)(struct watch *w),
		   void (*done)(struct connector *c, void *owner), void *owner);
void connector_ready(struct connector *c);
bool connector_recheck(struct connector *c);
void connector_cancel(struct connector *c);

#endif /* PROXY_CONNECT_H */
