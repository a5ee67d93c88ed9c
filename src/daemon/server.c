/* SPDX-License-Identifier: MIT */
/*
 * server.c - the workers, the listening sockets, and the signals
 *
 * The main thread relays nothing. It waits for signals and for the workers to
 * carry out its orders: on SIGTERM they are told to stop listening; when all
 * have, the listening sockets are closed and they are told to end with their
 * last flow; when the drain's time is up, or on a second signal, to end now.
 */
#include "daemon/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include "base/util.h"
#include "daemon/circle.h"
#include "daemon/listener.h"
#include "daemon/report.h"
#include "net/sock.h"

/* As long as the kernel lets us: a burst of clients waits there, not lost. */
#define BACKLOG 65535

/* Descriptors that a server has beside connections and pipes. */
#define FDS_BESIDE 16

/* How long the totals at the end wait for a stdout that is full. */
#define REPORT_WAIT_MS 1000

/* Wakes the main thread; any thread may. */
void server_ring(struct server *s)
{
	loop_wake(&s->loop);
}

/* Connections that are open now. */
unsigned server_load(const struct server *s)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < s->n_workers; i++)
		sum += atomic_load_explicit(&s->workers[i].load,
					    memory_order_relaxed);
	return sum;
}

/* Who should run the next flow: @self unless another has fewer. */
struct worker *server_least_loaded(struct server *s, struct worker *self)
{
	struct worker *best = self;
	unsigned least = atomic_load_explicit(&self->load, memory_order_relaxed);

	for (unsigned i = 0; i < s->n_workers; i++) {
		unsigned load = atomic_load_explicit(&s->workers[i].load,
						     memory_order_relaxed);

		if (load < least) {
			least = load;
			best = &s->workers[i];
		}
	}
	return best;
}

static void server_order(struct server *s, enum worker_order order)
{
	s->order = order;
	for (unsigned i = 0; i < s->n_started; i++)
		worker_tell(&s->workers[i], order);
}

/*
 * No worker may end while another may still hand it a flow: so all stop
 * listening first, and the rest follows when all have.
 */
static void server_hush(struct server *s)
{
	if (s->order == WORKER_RUN)
		server_order(s, WORKER_HUSH);
}

/* Cuts off what is left, as soon as nobody listens any more. */
static void server_end(struct server *s)
{
	s->end_now = true;
	server_hush(s);
	if (s->order == WORKER_FINISH)
		server_order(s, WORKER_END);
}

static void drain_is_over(struct timer *t)
{
	server_end(container_of(t, struct server, drain));
}

static void server_terminate(struct server *s)
{
	uint64_t ms = s->conf->drain_timeout_ms;
	bool again = s->order != WORKER_RUN;

	server_hush(s);
	if (again || !ms ||
	    loop_timer(&s->loop, &s->drain, now_ns() + ms * NS_PER_MS,
		       drain_is_over))
		server_end(s);
}

static void signal_ready(struct watch *w)
{
	struct server *s = container_of(w, struct server, signals);
	struct signalfd_siginfo info;

	while (read(w->fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGUSR1)
			report_print(s, s->conf->stats, 0);
		else
			server_terminate(s);
	}
}

static int watch_signals(struct server *s)
{
	sigset_t set;
	int fd, err;

	signal(SIGPIPE, SIG_IGN); /* splice(2) has no MSG_NOSIGNAL (K11) */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = loop_watch(&s->loop, &s->signals, fd, EPOLLIN, signal_ready);
	if (err)
		close_fd(fd);
	return err;
}

/* Listens; what is set on the socket is inherited by those it accepts. */
static int open_socket(const struct conf *conf, const struct addr *at)
{
	cleanup(close_fdp) int fd = sock_listen(at, BACKLOG);
	int err = 0;

	if (fd < 0)
		return steal_fd(&fd);
	if (conf->keepalive.idle_s)
		err = sock_keepalive(fd, &conf->keepalive);
	if (!err && conf->user_timeout_ms)
		err = sock_user_timeout(fd, conf->user_timeout_ms);
	return err ? err : steal_fd(&fd);
}

/* Return: 0, or -1 and said why; an address may have been left out. */
static int open_one(struct server *s, const struct rule *rule,
		    const struct addr *at)
{
	char text[ADDR_STRLEN];
	struct listening *l;
	socklen_t len = sizeof(l->at);
	int fd = open_socket(s->conf, at), err;

	/* "*" is every family that this machine has. */
	if (rule->any && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL))
		return 0;
	if (fd < 0) {
		log_error("%s%scannot listen at %s: %s", rule->where,
			  *rule->where ? ": " : "", addr_format(at, text),
			  strerror(-fd));
		return -1;
	}
	l = &s->open[s->n_open++];
	*l = (struct listening){ .fd = fd, .at = *at, .rule = rule };
	(void)getsockname(fd, &l->at.sa, &len); /* for port 0 */
	err = listener_new(&s->workers[s->n_open % s->n_workers], rule, fd);
	if (err) {
		log_error("%s: %s", addr_format(at, text), strerror(-err));
		return -1;
	}
	return 0;
}

static int open_rule(struct server *s, const struct rule *rule)
{
	unsigned first = s->n_open;

	for (unsigned i = 0; i < rule->n_listens; i++) {
		struct addr at = rule->listens[i];

		/* Port 0: what the kernel chose first is for all. */
		if (!rule->listen.port && s->n_open > first)
			addr_set_port(&at, addr_port(&s->open[first].at));
		if (open_one(s, rule, &at))
			return -1;
	}
	if (s->n_open > first)
		return 0;
	log_error("%s%sno network protocol to listen with", rule->where,
		  *rule->where ? ": " : "");
	return -1;
}

static int open_listeners(struct server *s)
{
	const struct conf *conf = s->conf;
	unsigned n = 0;

	for (unsigned i = 0; i < conf->n_rules; i++)
		n += conf->rules[i].n_listens;
	s->open = calloc(n, sizeof(*s->open));
	if (!s->open) {
		log_error("%s", strerror(ENOMEM));
		return -1;
	}
	for (unsigned i = 0; i < conf->n_rules; i++)
		if (open_rule(s, &conf->rules[i]))
			return -1;
	return 0;
}

static void close_listeners(struct server *s)
{
	while (s->n_open)
		close_fd(s->open[--s->n_open].fd);
}

static rlim_t raise_descriptors(void)
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

static int make_workers(struct server *s)
{
	unsigned n = s->conf->workers;
	int err;

	s->workers = calloc(n, sizeof(*s->workers));
	if (!s->workers) {
		log_error("%u workers: %s", n, strerror(ENOMEM));
		return -1;
	}
	for (; s->n_workers < n; s->n_workers++) {
		err = worker_init(&s->workers[s->n_workers], s, s->n_workers);
		if (err) {
			log_error("worker %u of %u: %s", s->n_workers + 1, n,
				  strerror(-err));
			return -1;
		}
	}
	return 0;
}

static int start_workers(struct server *s)
{
	for (; s->n_started < s->n_workers; s->n_started++) {
		int err = worker_start(&s->workers[s->n_started]);

		if (err) {
			log_error("worker %u of %u: %s", s->n_started + 1,
				  s->n_workers, strerror(-err));
			return -1;
		}
	}
	return 0;
}

static void say_listening(const struct listening *l)
{
	char from[ADDR_STRLEN], to[ADDR_STRLEN];

	for (unsigned i = 0; i < l->rule->n_targets; i++)
		log_notice("%s -> %s%s", addr_format(&l->at, from),
			   addr_format(&l->rule->targets[i], to),
			   i ? " (if the one before fails)" : "");
}

/* How bytes will go. */
static void say_mode(const struct server *s, unsigned long pipes, char *out,
		     size_t room)
{
	const struct conf *conf = s->conf;
	const char *mode = conf_mode_name(conf->mode);
	size_t got = s->workers[0].pipe_got, wished = conf->pipe_size;

	if (conf->mode == RELAY_COPY)
		snprintf(out, room, "%s, buffers of %zu bytes", mode,
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

/* What is said once clients are really accepted. */
static void say_ready(const struct server *s, rlim_t fds)
{
	bool splice = s->conf->mode != RELAY_COPY;
	bool own = splice && s->conf->own_pipes;
	unsigned long pipes = 0, each = own ? 2 + 2 * 2 : 2, beside, room;
	char how[96];

	for (unsigned i = 0; i < s->n_open; i++)
		say_listening(&s->open[i]);
	for (unsigned i = 0; i < s->n_workers; i++)
		pipes += s->workers[i].env.pipes.limit;
	beside = FDS_BESIDE + 4 * s->n_workers + s->n_open;
	if (splice && !own)
		beside += 2 * pipes;
	room = fds > beside ? (fds - beside) / each : 0;
	say_mode(s, pipes, how, sizeof(how));
	log_notice("ready: %u worker%s, %s, descriptors for %lu connections",
		   s->n_workers, s->n_workers == 1 ? "" : "s", how, room);
}

static bool all_obeyed(const struct server *s)
{
	for (unsigned i = 0; i < s->n_started; i++)
		if (atomic_load(&s->workers[i].obeyed) < (int)s->order)
			return false;
	return true;
}

static bool all_over(const struct server *s)
{
	for (unsigned i = 0; i < s->n_started; i++)
		if (atomic_load(&s->workers[i].load) ||
		    atomic_load(&s->workers[i].obeyed) < WORKER_FINISH)
			return false;
	return true;
}

/* Runs until the last flow has ended after a SIGTERM. */
static void server_loop(struct server *s)
{
	while (!all_over(s)) {
		(void)loop_turn(&s->loop, -1);
		if (s->order == WORKER_HUSH && all_obeyed(s)) {
			close_listeners(s);
			server_order(s, s->end_now ? WORKER_END : WORKER_FINISH);
		}
	}
}

static void say_end(const struct server *s)
{
	uint64_t accepted = 0, delivered = 0;

	for (unsigned i = 0; i < s->n_workers; i++) {
		const struct worker *w = &s->workers[i];

		accepted += counter_read(&w->stats.accepted);
		delivered += counter_read(&w->env.tally.send.bytes) +
			     counter_read(&w->env.tally.splice_out.bytes);
	}
	log_notice("stopped: %llu connections, %llu bytes delivered",
		   (unsigned long long)accepted, (unsigned long long)delivered);
	if (s->conf->stats != STATS_NONE)
		report_print(s, s->conf->stats, REPORT_WAIT_MS);
}

static int server_start(struct server *s)
{
	rlim_t fds = raise_descriptors();
	int err = watch_signals(s);

	if (err) {
		log_error("signals: %s", strerror(-err));
		return -1;
	}
	if (make_workers(s) || open_listeners(s) || circle_is_found(s) ||
	    start_workers(s))
		return -1;
	say_ready(s, fds);
	return 0;
}

static void server_fini(struct server *s)
{
	for (unsigned i = 0; i < s->n_started; i++)
		worker_join(&s->workers[i]);
	for (unsigned i = 0; i < s->n_workers; i++)
		worker_fini(&s->workers[i]);
	close_listeners(s);
	free(s->workers);
	free(s->open);
	loop_untimer(&s->loop, &s->drain);
	close_fd(s->signals.fd);
	loop_fini(&s->loop);
}

/**
 * server_run() - forward until told to stop
 *
 * Return: 0, or -1 if it could not start, and said why.
 */
int server_run(const struct conf *conf)
{
	struct server s = { .conf = conf,
			    .started_ns = now_ns(),
			    .signals.fd = -1 };
	int err = loop_init(&s.loop);

	if (err) {
		log_error("%s", strerror(-err));
		return -1;
	}
	err = server_start(&s);
	if (err)
		server_end(&s);
	server_loop(&s);
	if (!err)
		say_end(&s);
	server_fini(&s);
	return err;
}
