/* SPDX-License-Identifier: MIT */
/*
 * startup.c - the lines that say what was started.
 */
#include "daemon/startup.h"

#include <stdio.h>

#include "base/util.h"

/* Descriptors of the process besides connections and pipes. */
#define DESCRIPTORS_BESIDE 16

/* Raises the limit of descriptors as far as it may. Return: what it is now. */
rlim_t startup_raise_descriptors(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim))
		return 1024;
	if (lim.rlim_cur < lim.rlim_max) {
		lim.rlim_cur = lim.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &lim))
			getrlimit(RLIMIT_NOFILE, &lim);
	}
	return lim.rlim_cur;
}

static void log_listening(const struct listen_socket *l)
{
	const struct target_set *set = l->route->found;
	char from[ADDR_STRLEN], to[RULE_NAME_LEN];

	addr_format(&l->at, from);
	if (!set)
		log_notice("%s -> %s (not resolved yet)", from,
			   rule_target_name(l->route->rule, to));
	for (unsigned i = 0; set && i < set->n; i++)
		log_notice("%s -> %s%s", from, target_format(&set->at[i], to),
			   i ? " (if the one before fails or is slow)" : "");
}

/* How bytes are moved: "splice, 512 pipes of 1048576 bytes (requested ...)". */
static void format_mode(const struct conf *conf, const struct worker *w,
			unsigned long pipes, char *out, size_t room)
{
	const char *mode = conf_mode_name(conf->options.mode);
	size_t got = w->pipe_size, requested = conf->pipe_size;

	if (!conf_uses_pipes(conf))
		snprintf(out, room, "%s, buffers of %zu bytes",
			 conf_mode_name(w->env.mode), conf->buffer_size);
	else if (!got)
		snprintf(out, room, "%s, no pipe available yet (requested %zu)",
			 mode, requested);
	else if (conf->own_pipes)
		snprintf(out, room,
			 "%s, two pipes of %zu bytes each (requested %zu)",
			 mode, got, requested);
	else
		snprintf(out, room, "%s, %lu pipes of %zu bytes (requested %zu)",
			 mode, pipes, got, requested);
}

/* Logs each listening socket, and that the process is ready: clients are being
 * accepted. */
void startup_log(const struct conf *conf, const struct listen_set *listens,
		 const struct workers *workers, rlim_t descriptors)
{
	bool splice = conf_uses_pipes(conf), own = splice && conf->own_pipes;
	unsigned long pipes = 0, each = own ? 2 + 2 * 2 : 2, beside, room;
	char how[96];

	list_each (node, &listens->entries)
		log_listening(
			&container_of(node, struct listen_entry, node)->socket);
	for (unsigned i = 0; i < workers->n; i++)
		pipes += workers->at[i].env.pipes.limit;
	beside = DESCRIPTORS_BESIDE + 4 * workers->n + listens->n;
	if (conf_uses(conf, RELAY_URING))
		beside += workers->n;
	if (splice && !own)
		beside += 2 * pipes;
	room = descriptors > beside ? (descriptors - beside) / each : 0;
	format_mode(conf, &workers->at[0], pipes, how, sizeof(how));
	log_notice("ready: %u worker%s, %s, descriptors for %lu connections",
		   workers->n, workers->n == 1 ? "" : "s", how, room);
}
