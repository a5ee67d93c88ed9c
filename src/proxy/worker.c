/* SPDX-License-Identifier: MIT */
/*
 * worker.c - a thread that owns everything it touches
 *
 * Other threads post to its inbox; nothing else of it is theirs but @load.
 */
#include "proxy/worker.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "base/util.h"
#include "relay/engine.h"

/* Pipes of a worker, where no quota allows less: with these a lane seldom waits
 * for a pipe, and their memory is little beside that of the sockets. */
#define PIPES_MAX 256

/* Pipes may take one descriptor of this many. */
#define PIPES_PART 8

/*
 * How many pipes of the user's quota, and of the descriptors, this worker may
 * have. @size is 0 if no pipe can be made now; that may change.
 */
static unsigned pipe_limit(const struct conf *conf, size_t size)
{
	unsigned long quota = pipes_quota(size ? size : conf->pipe_size);
	struct rlimit fds = { .rlim_cur = 1024 };
	unsigned long limit;

	if (conf->own_pipes && quota == UINT_MAX)
		return UINT_MAX;
	getrlimit(RLIMIT_NOFILE, &fds);
	limit = fds.rlim_cur / PIPES_PART / 2;
	if (conf->own_pipes || limit > quota)
		limit = quota;
	limit /= conf->workers;
	if (!limit && quota)
		limit = 1;
	return limit < PIPES_MAX ? (unsigned)limit : PIPES_MAX;
}

static void init_pipes(struct worker *w, const struct conf *conf)
{
	w->env.own_pipes = conf->own_pipes;
	if (!conf_uses_pipes(conf))
		return;
	w->pipe_size = pipes_probe(&w->env.pipes);
	w->env.pipes.limit = pipe_limit(conf, w->pipe_size);
}

/* Where it is refused, data is copied. */
static void init_engine(struct worker *w, const struct conf *conf)
{
	const struct engine_ops *engine = engine_of(conf->options.mode);
	int err;

	if (!engine)
		return;
	err = engine->open(&w->env);
	if (!err)
		return;
	w->env.mode = RELAY_COPY;
	w->env.refused = FALLBACK_uring;
	if (!w->index)
		log_warn("io_uring unavailable: %s; data is copied instead",
			 strerror(-err));
}

static int init_relays(struct worker *w, const struct conf *conf)
{
	int err = relay_env_init(&w->env, &w->loop, conf->buffer_size,
				 conf->pipe_size, 1);

	if (err)
		return err;
	w->env.mode = conf->options.mode;
	w->env.idle_ms = conf->options.idle_timeout_ms;
	w->env.half_close_ms = conf->options.half_close_timeout_ms;
	w->env.linger_ms = conf->options.linger_ms;
	w->env.discard_max = conf->options.discard_max;
	init_pipes(w, conf);
	init_engine(w, conf);
	return 0;
}

/**
 * worker_init() - make a worker whose thread is started later
 * @conf:	read now, not kept
 *
 * Return: 0, or a negative errno and nothing is left behind; if the loop could
 *	not be made, w->loop.refused says why.
 */
int worker_init(struct worker *w, struct workers *all, const struct conf *conf,
		unsigned index)
{
	int err;

	memset(w, 0, sizeof(*w));
	w->all = all;
	w->index = index;
	w->reserve = -1;
	list_init(&w->flows);
	err = loop_init(&w->loop);
	if (err)
		return err;
	err = worker_has_reserve(w) ? init_relays(w, conf) : -errno;
	if (err) {
		close_fd(w->reserve);
		loop_fini(&w->loop);
		return err;
	}
	busy_poll_init(&w->loop.busy_poll, conf->busy_poll_us,
		       conf->busy_poll_adapts);
	inbox_init(&w->inbox, &w->loop);
	dead_peers_init(&w->dead_peers, &w->loop);
	return 0;
}

static void quit(struct message *m)
{
	container_of(m, struct worker, quit)->over = true;
}

/* Ends its thread, if there is one. All flows have ended, and all requests have
 * been acknowledged. */
void worker_fini(struct worker *w)
{
	if (w->thread) {
		w->quit.fn = quit;
		inbox_post(&w->inbox, &w->quit);
		(void)pthread_join(w->thread, NULL);
	}
	assert(list_empty(&w->flows));
	dead_peers_fini(&w->dead_peers);
	relay_env_fini(&w->env);
	inbox_fini(&w->inbox);
	loop_fini(&w->loop);
	close_fd(w->reserve);
}

static void *worker_main(void *arg)
{
	static struct ratelimit limit;
	struct worker *w = arg;
	int err;

	while (!w->over) {
		err = loop_turn(&w->loop, -1);
		if (err)
			log_ratelimited(&limit, LOG_ERROR, "epoll_wait: %s",
					strerror(-err));
		inbox_run(&w->inbox);
		if (w->drain && list_empty(&w->flows)) {
			request_ack(w->drain, 0);
			w->drain = NULL;
		}
	}
	return NULL;
}

/* Return: 0, or a negative errno. */
int worker_start(struct worker *w)
{
	char name[16];
	int err = pthread_create(&w->thread, NULL, worker_main, w);

	if (err) {
		w->thread = 0;
		return -err;
	}
	snprintf(name, sizeof(name), "sluice/%u", w->index);
	(void)pthread_setname_np(w->thread, name);
	return 0;
}

/* Has @r acknowledged once there is no flow. Return: what request.run() does. */
int worker_drain(struct worker *w, struct request *r)
{
	assert(!w->drain);
	w->drain = r;
	return REQUEST_PENDING;
}

/* Connections that are open now; any thread may ask. */
unsigned workers_load(const struct workers *all)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < all->n; i++)
		sum += atomic_load_explicit(&all->at[i].load,
					    memory_order_relaxed);
	return sum;
}

/* The worker for the next flow: @self unless another has fewer, by more than
 * @more. */
struct worker *worker_least_loaded(struct worker *self, unsigned more)
{
	struct workers *all = self->all;
	struct worker *best = self;
	unsigned least = atomic_load_explicit(&self->load, memory_order_relaxed);

	least = least > more ? least - more : 0;
	for (unsigned i = 0; i < all->n; i++) {
		unsigned load = atomic_load_explicit(&all->at[i].load,
						     memory_order_relaxed);

		if (load < least) {
			least = load;
			best = &all->at[i];
		}
	}
	return best;
}

/* A flow is brief if it lasted no longer than the first; brief flows come often
 * if a ring full of them ended within the second. */
#define BRIEF_NS (20 * NS_PER_MS)
#define OFTEN_NS (50 * NS_PER_MS)

/* At least 16 connections shorter than 20 ms ended within the last 50 ms. */
bool worker_is_brief(const struct worker *w, uint64_t now)
{
	return now - w->brief_ns[w->brief_at] < OFTEN_NS;
}

/* A flow that was accepted at @born_ns has been closed, and is freed next. */
void worker_flow_ended(struct worker *w, uint64_t born_ns)
{
	uint64_t now = now_ns();

	if (now - born_ns <= BRIEF_NS) {
		w->brief_ns[w->brief_at] = now;
		w->brief_at = (w->brief_at + 1) % BRIEF_FLOWS;
	}
	atomic_fetch_sub(&w->load, 1);
	(void)worker_has_reserve(w); /* two descriptors have become free */
}

/* Whether the reserve is there, or could be opened again: any descriptor will
 * do, so it needs no file. */
bool worker_has_reserve(struct worker *w)
{
	if (w->reserve < 0)
		w->reserve = eventfd(0, EFD_CLOEXEC);
	return w->reserve >= 0;
}

/* Gives the reserve up. Return: whether there was one. */
bool worker_use_reserve(struct worker *w)
{
	if (w->reserve < 0)
		return false;
	w->reserve = close_fd(w->reserve);
	return true;
}
