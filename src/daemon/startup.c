/* SPDX-License-Identifier: MIT */
/*
 * announce.c - what is said when the program is ready, and when it ends.
 */
#include "daemon/startup.h"

#include <stdio.h>

#include "daemon/report.h"

/* Descriptors that a server has beside connections and pipes. */
#define DESCRIPTORS_BESIDE 16

static void say_listening(const struct listen_socket *l)
{
	const struct target_set *set = l->rule->found;
	char from[ADDR_STRLEN], to[RULE_NAME_LEN];

	addr_format(&l->at, from);
	if (!set)
		log_notice("%s -> %s (not resolved yet)", from,
			   rule_target_name(l->rule, to));
	for (unsigned i = 0; set && i < set->n; i++)
		log_notice("%s -> %s%s", from, target_format(&set->at[i], to),
			   i ? " (if the one before fails or is slow)" : "");
}

/* How bytes will go. */
static void say_mode(const struct server *s, unsigned long pipes, char *out,
		     size_t room)
{
	const struct conf *conf = s->conf;
	const char *mode = conf_mode_name(conf->mode);
	size_t got = s->workers[0].pipe_got, wished = conf->pipe_size;

	if (!conf_uses_pipes(conf))
		snprintf(out, room, "%s, buffers of %zu bytes",
			 conf_mode_name(s->workers[0].env.mode),
			 conf->buffer_size);
	else if (!got)
		snprintf(out, room, "%s, no pipe to be had yet (wished %zu)",
			 mode, wished);
	else if (conf->own_pipes)
		snprintf(out, room,
			 "%s, two pipes of %zu bytes each (wished "
			 "%zu)",
			 mode, got, wished);
	else
		snprintf(out, room, "%s, %lu pipes of %zu bytes (wished %zu)",
			 mode, pipes, got, wished);
}

/* Once clients are really accepted. */
void startup_report(const struct server *s, rlim_t descriptors)
{
	bool splice = conf_uses_pipes(s->conf);
	bool own = splice && s->conf->own_pipes;
	unsigned long pipes = 0, each = own ? 2 + 2 * 2 : 2, beside, room;
	char how[96];

	for (unsigned i = 0; i < s->n_open; i++)
		say_listening(&s->open[i]);
	for (unsigned i = 0; i < s->n_workers; i++)
		pipes += s->workers[i].env.pipes.limit;
	beside = DESCRIPTORS_BESIDE + 4 * s->n_workers + s->n_open;
	if (s->conf->mode == RELAY_URING)
		beside += s->n_workers;
	if (splice && !own)
		beside += 2 * pipes;
	room = descriptors > beside ? (descriptors - beside) / each : 0;
	say_mode(s, pipes, how, sizeof(how));
	log_notice("ready: %u worker%s, %s, descriptors for %lu connections",
		   s->n_workers, s->n_workers == 1 ? "" : "s", how, room);
}

/* Once the last flow has ended. */
void startup_report_end(const struct server *s)
{
	uint64_t accepted = 0, delivered = 0;

	for (unsigned i = 0; i < s->n_workers; i++) {
		const struct worker *w = &s->workers[i];

		accepted += counter_read(&w->stats.accepted);
		delivered += counter_read(&w->env.stats.send.bytes) +
			     counter_read(&w->env.stats.splice_out.bytes);
	}
	log_notice("stopped: %llu connections, %llu bytes delivered",
		   (unsigned long long)accepted, (unsigned long long)delivered);
	log_flush(); /* before the totals, where both go to one terminal */
	if (s->conf->stats != STATS_NONE)
		report_print(s, s->conf->stats);
	report_flush();
}
