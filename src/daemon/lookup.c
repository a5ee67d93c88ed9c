/* SPDX-License-Identifier: MIT */
/*
 * lookup.c - the names of rules, at the start and until each has an answer
 *
 * The start waits for a first answer to each name, but not for longer than a
 * bounded time. A rule whose target has no address by then listens all the same:
 * its clients are reset until there is one. What to listen at must be known.
 */
#include "daemon/lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "daemon/forward_loop.h"
#include "daemon/server.h"

/* How long the start waits for answers, to all names together. */
#define START_S 5

/* Names are numbered by rule and end. */
static unsigned id_of(unsigned rule, bool target)
{
	return 2 * rule + target;
}

static void cannot_listen(struct server *s, const struct rule *rule,
			  const char *why)
{
	log_error("%s%s%s: %s", rule->where, rule_colon(rule),
		  rule->listen.host, why);
	s->lookup.failed = true;
}

/* Once for each rule, until it has an answer. */
static void warn_unresolved(struct rule *rule, const char *why)
{
	char name[RULE_NAME_LEN];

	if (rule->told)
		return;
	rule->told = true;
	log_warn("%s%starget %s: %s; its clients are reset until it resolves",
		 rule->where, rule_colon(rule), rule_target_name(rule, name),
		 why);
}

static void note_resolved(struct rule *rule, unsigned n)
{
	char name[RULE_NAME_LEN], first[TARGET_STRLEN];
	const char *where = rule->where, *colon = rule_colon(rule);

	rule_target_name(rule, name);
	if (n > TARGETS_MAX)
		log_warn("%s%starget %s: %u addresses; the first %d are used",
			 where, colon, name, n, TARGETS_MAX);
	if (rule->told)
		log_notice("%s%starget %s: resolved (%u addresses, the first "
			   "is %s); its clients are forwarded",
			   where, colon, name, rule->found->n,
			   target_format(&rule->found->at[0], first));
	rule->told = false;
}

/*
 * Takes the addresses of a target. Once workers run they are checked here, as
 * at the start, for leading back to the rule.
 *
 * Return: whether they are used; else the name is looked up again.
 */
static bool take_targets(struct server *s, struct rule *rule,
			 const struct addr *addrs, unsigned n)
{
	int err = rule_set_targets(rule, addrs, n);

	if (err) {
		warn_unresolved(rule, strerror(-err));
		return false;
	}
	if (s->n_started) {
		if (forward_loop_find(s)) {
			target_set_free(rule->found);
			rule->found = NULL;
			return false;
		}
		rule_publish(rule);
	}
	note_resolved(rule, n);
	return true;
}

static void take(struct server *s, const struct answer *a)
{
	struct rule *rule = &s->conf->rules[a->id / 2];
	bool target = a->id % 2, done = false;

	s->lookup.n_waiting -= a->first;
	if (target && !rule->found) {
		if (a->err)
			warn_unresolved(rule, resolver_error(a->err));
		else
			done = take_targets(s, rule, a->addrs, a->n);
	} else if (!target && !rule->listens) {
		int err = a->err ? 0 : rule_set_listens(rule, a->addrs, a->n);

		done = !a->err && !err;
		if (!done)
			cannot_listen(s, rule,
				      resolver_error(err ? err : a->err));
	}
	if (done)
		resolver_settle(s->lookup.resolver, a->id);
}

/* Takes what has been answered; whenever the main thread was woken. */
void lookup_collect(struct server *s)
{
	struct lookup *l = &s->lookup;
	struct answer a;

	while (l->resolver && !l->failed && resolver_take(l->resolver, &a)) {
		take(s, &a);
		free(a.addrs);
	}
	if (l->resolver && resolver_is_idle(l->resolver))
		lookup_end(s);
}

/* A numeric address is read here and now, a name is asked for. */
static int look_up(struct server *s, unsigned i, bool target)
{
	struct lookup *l = &s->lookup;
	struct rule *rule = &s->conf->rules[i];
	const struct endpoint *e = target ? &rule->target : &rule->listen;
	struct addr a;
	int err;

	if (!*e->host)
		return rule_listen_anywhere(rule);
	if (!addr_parse_ip(&a, e->host, e->port))
		return target ? rule_set_targets(rule, &a, 1)
			      : rule_set_listens(rule, &a, 1);
	if (!l->resolver)
		l->resolver = resolver_new(&s->loop);
	if (!l->resolver)
		return -ENOMEM;
	err = resolver_ask(l->resolver, id_of(i, target), e->host, e->port);
	if (!err)
		l->n_waiting++;
	return err;
}

static int look_up_all(struct server *s)
{
	for (unsigned i = 0; i < s->conf->n_rules; i++) {
		const struct rule *rule = &s->conf->rules[i];
		int err = look_up(s, i, false);

		if (!err)
			err = look_up(s, i, true);
		if (err) {
			log_error("%s%scannot look up addresses: %s",
				  rule->where, rule_colon(rule), strerror(-err));
			return -1;
		}
	}
	return 0;
}

static void out_of_patience(struct timer *t)
{
	container_of(t, struct lookup, patience)->over = true;
}

/* What has no answer yet is treated like what has a bad one. */
static void stop_waiting(struct server *s)
{
	char why[64];

	snprintf(why, sizeof(why), "no answer from the resolver within %d s",
		 START_S);
	for (unsigned i = 0; i < s->conf->n_rules; i++) {
		struct rule *rule = &s->conf->rules[i];

		if (!rule->listens) {
			cannot_listen(s, rule, why);
			return;
		}
		if (!rule->found)
			warn_unresolved(rule, why);
	}
}

/**
 * lookup_begin() - find the addresses of every rule
 *
 * Waits for answers, or until a signal ends the program before it has started.
 * Signals must be watched already.
 *
 * Return: 0, or -1 and the reason has been logged.
 */
int lookup_begin(struct server *s)
{
	struct lookup *l = &s->lookup;
	int err;

	if (look_up_all(s))
		return -1;
	err = l->n_waiting ? loop_timer(&s->loop, &l->patience,
					now_ns() + START_S * NS_PER_SEC,
					out_of_patience)
			   : 0;
	if (err) {
		log_error("%s", strerror(-err));
		return -1;
	}
	while (l->n_waiting && !l->over && !l->failed && s->order == WORKER_RUN) {
		(void)loop_turn(&s->loop, -1);
		lookup_collect(s);
	}
	loop_untimer(&s->loop, &l->patience);
	if (!l->failed && l->over)
		stop_waiting(s);
	return l->failed ? -1 : 0;
}

/* No name is looked up any more. */
void lookup_end(struct server *s)
{
	resolver_close(s->lookup.resolver);
	s->lookup.resolver = NULL;
}
