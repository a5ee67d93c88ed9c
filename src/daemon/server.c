/* SPDX-License-Identifier: MIT */
/*
 * server.c - the workers and the signals
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
#include "daemon/startup.h"
#include "daemon/forward_loop.h"
#include "daemon/listen_socket.h"
#include "daemon/report.h"

/* Wakes the main thread; any thread may. */
void server_ring(struct server *s)
{
	loop_wake(&s->loop);
}

/* Keeps a worker's thread waiting until all of the start is done. */
void server_wait_start(struct server *s)
{
	pthread_mutex_lock(&s->start_gate);
	pthread_mutex_unlock(&s->start_gate);
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

/* Who should run the next flow: @self unless another has fewer, by more than
 * @more. */
struct worker *server_least_loaded(struct server *s, struct worker *self,
				   unsigned more)
{
	struct worker *best = self;
	unsigned least = atomic_load_explicit(&self->load, memory_order_relaxed);

	least = least > more ? least - more : 0;

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

static void report_is_due(struct timer *t);

/* Looks whether stdout takes the reports, once it should have. */
static void watch_reports(struct server *s)
{
	(void)loop_timer(&s->loop, &s->report,
			 now_ns() + REPORT_WAIT_MS * NS_PER_MS, report_is_due);
}

static void report_is_due(struct timer *t)
{
	if (report_check())
		watch_reports(container_of(t, struct server, report));
}

static void server_report(struct server *s)
{
	report_print(s, s->conf->stats);
	if (!timer_is_set(&s->report))
		watch_reports(s);
}

static void signal_ready(struct watch *w)
{
	struct server *s = container_of(w, struct server, signals);
	struct signalfd_siginfo info;

	while (read(w->fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGUSR1)
			server_report(s);
		else
			server_terminate(s);
	}
}

/* Return: 0, or -1 and the reason has been logged. */
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
	if (fd < 0) {
		log_error("cannot create signalfd: %s", strerror(errno));
		return -1;
	}
	err = loop_watch(&s->loop, &s->signals, fd, EPOLLIN, signal_ready);
	if (err) {
		log_error("cannot watch signalfd: %s", strerror(-err));
		s->signals.fd = close_fd(fd);
	}
	return err ? -1 : 0;
}

/* "cannot create timerfd: ", where that is why a loop could not be made. */
static const char *why_no_loop(const struct loop *loop, char text[static 40])
{
	*text = '\0';
	if (loop->refused)
		snprintf(text, 40, "cannot create %s: ", loop->refused);
	return text;
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
	char why[40];
	int err;

	s->workers = calloc(n, sizeof(*s->workers));
	if (!s->workers) {
		log_error("%u workers: %s", n, strerror(ENOMEM));
		return -1;
	}
	for (; s->n_workers < n; s->n_workers++) {
		err = worker_init(&s->workers[s->n_workers], s, s->n_workers);
		if (err) {
			log_error("worker %u of %u: %s%s", s->n_workers + 1, n,
				  why_no_loop(&s->workers[s->n_workers].loop, why),
				  strerror(-err));
			return -1;
		}
	}
	return 0;
}

/*
 * Starts the threads, which wait at the gate: so listeners are given only to
 * workers that have one. A thread may be refused, by pids.max of a container
 * for example; then those that have started do the work.
 */
static int start_workers(struct server *s)
{
	unsigned n = s->n_workers;
	int err = 0;

	while (!err && s->n_started < n) {
		err = worker_start(&s->workers[s->n_started]);
		if (!err)
			s->n_started++;
	}
	if (!err)
		return 0;
	if (!s->n_started) {
		log_error("cannot start a worker thread: %s", strerror(-err));
		return -1;
	}
	log_warn("cannot start worker thread %u of %u: %s; running with %u",
		 s->n_started + 1, n, strerror(-err), s->n_started);
	while (s->n_workers > s->n_started)
		worker_fini(&s->workers[--s->n_workers]);
	return 0;
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
		lookup_collect(s);
		if (s->order == WORKER_HUSH && all_obeyed(s)) {
			listen_sockets_close(s);
			server_order(s, s->end_now ? WORKER_END : WORKER_FINISH);
		}
	}
}

static int server_start(struct server *s)
{
	rlim_t fds = raise_descriptors();

	if (watch_signals(s) || lookup_begin(s))
		return -1;
	if (s->order != WORKER_RUN)
		return 0; /* a signal came first */
	if (make_workers(s) || start_workers(s) || listen_sockets_open(s) ||
	    forward_loop_find(s))
		return -1;
	for (unsigned i = 0; i < s->conf->n_rules; i++)
		rule_publish(&s->conf->rules[i]);
	startup_report(s, fds);
	return 0;
}

static void server_fini(struct server *s)
{
	for (unsigned i = 0; i < s->n_started; i++)
		worker_join(&s->workers[i]);
	for (unsigned i = 0; i < s->n_workers; i++)
		worker_fini(&s->workers[i]);
	outgoing_fini(&s->outgoing);
	listen_sockets_close(s);
	lookup_end(s);
	free(s->workers);
	free(s->open);
	loop_untimer(&s->loop, &s->drain);
	loop_untimer(&s->loop, &s->report);
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
			    .start_gate = PTHREAD_MUTEX_INITIALIZER,
			    .signals.fd = -1 };
	char why[40];
	int err = loop_init(&s.loop);

	if (err) {
		log_error("%s%s", why_no_loop(&s.loop, why), strerror(-err));
		return -1;
	}
	outgoing_init(&s.outgoing);
	pthread_mutex_lock(&s.start_gate);
	err = server_start(&s);
	if (err)
		server_end(&s);
	pthread_mutex_unlock(&s.start_gate);
	server_loop(&s);
	if (!err)
		startup_report_end(&s);
	server_fini(&s);
	return err;
}
