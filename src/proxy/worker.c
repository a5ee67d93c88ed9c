/* SPDX-License-Identifier: MIT */
/*
 * worker.c - a thread that owns all it touches
 *
 * Other threads speak to it in two ways: an order, which is a number, and a
 * flow in its inbox; then they wake its loop.
 */
#include "proxy/worker.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "base/util.h"
#include "proxy/acceptor.h"
#include "daemon/server.h"
#include "relay/engine.h"

/* Pipes a worker where no quota says less: enough that a lane in flow hardly
 * ever waits, and little beside the sockets. */
#define PIPES_MAX 256

/* Of the descriptors, so many pipes may take a share of one in this. */
#define PIPES_PART 8

/*
 * What this worker may have of the user's pipes, and of the descriptors. If
 * there is no pipe to be had just now, @size is 0: that may change.
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

static void worker_init_pipes(struct worker *w)
{
	w->env.own_pipes = w->conf->own_pipes;
	if (!conf_uses_pipes(w->conf))
		return;
	w->pipe_got = pipes_probe(&w->env.pipes);
	w->env.pipes.limit = pipe_limit(w->conf, w->pipe_got);
}

/* Where it is refused, the bytes are copied without. */
static void worker_init_engine(struct worker *w)
{
	const struct engine_ops *engine = engine_of(w->conf->mode);
	int err;

	if (!engine)
		return;
	err = engine->open(&w->env);
	if (!err)
		return;
	w->env.mode = RELAY_COPY;
	w->env.refused = FALLBACK_uring;
	if (!w->index)
		log_warn("io_uring refused: %s; it copies instead",
			 strerror(-err));
}

/**
 * worker_init() - make a worker that has not started yet
 *
 * Return: 0, or a negative errno and nothing is left behind.
 */
int worker_init(struct worker *w, struct server *server, unsigned index)
{
	const struct conf *conf = server->conf;
	int err;

	memset(w, 0, sizeof(*w));
	w->reserve = -1;
	w->server = server;
	w->outgoing = &server->outgoing;
	w->conf = conf;
	w->index = index;
	list_init(&w->acceptors);
	list_init(&w->flows);
	list_init(&w->inbox);
	pthread_mutex_init(&w->lock, NULL);
	err = loop_init(&w->loop);
	if (err)
		return err;
	if (!worker_has_reserve(w)) {
		err = -errno;
		loop_fini(&w->loop);
		return err;
	}
	err = relay_env_init(&w->env, &w->loop, conf->buffer_size,
			     conf->pipe_size, 1);
	if (err) {
		close_fd(w->reserve);
		loop_fini(&w->loop);
		return err;
	}
	busy_poll_init(&w->loop.busy_poll, conf->busy_poll_us,
		       conf->busy_poll_adapts);
	w->env.mode = conf->mode;
	w->env.idle_ms = conf->idle_timeout_ms;
	w->env.half_close_ms = conf->half_close_timeout_ms;
	w->env.linger_ms = conf->linger_ms;
	w->env.discard_max = conf->discard_max;
	worker_init_pipes(w);
	worker_init_engine(w);
	return 0;
}

/* After worker_join(), or if it never started. */
void worker_fini(struct worker *w)
{
	while (!list_empty(&w->acceptors))
		acceptor_free(
			container_of(w->acceptors.next, struct acceptor, node));
	relay_env_fini(&w->env);
	loop_untimer(&w->loop, &w->dead_peer);
	loop_fini(&w->loop);
	close_fd(w->reserve);
	pthread_mutex_destroy(&w->lock);
}

/* Whether the reserve is there, or could be put back: any descriptor will do,
 * so it needs no file. */
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

/* Called by any thread. */
void worker_tell(struct worker *w, enum worker_order order)
{
	atomic_store(&w->order, (int)order);
	loop_wake(&w->loop);
}

/* Hands a flow to another worker; called by the thread that accepted it. */
void worker_give(struct worker *w, struct flow *f)
{
	pthread_mutex_lock(&w->lock);
	list_append(&w->inbox, &f->node);
	atomic_store(&w->has_mail, 1);
	pthread_mutex_unlock(&w->lock);
	loop_wake(&w->loop);
}

/* A flow that lasted no longer was brief; and brief ones come often if so many
 * as the ring holds have ended within the second time. */
#define BRIEF_NS (20 * NS_PER_MS)
#define OFTEN_NS (50 * NS_PER_MS)

/* Whether brief flows come and go here just now, many of them. */
bool worker_is_brief(const struct worker *w, uint64_t now)
{
	return now - w->brief_ns[w->brief_at] < OFTEN_NS;
}

static void note_brief(struct worker *w, const struct flow *f)
{
	uint64_t now = now_ns();

	if (now - f->born_ns > BRIEF_NS)
		return;
	w->brief_ns[w->brief_at] = now;
	w->brief_at = (w->brief_at + 1) % array_size(w->brief_ns);
}

/* The last that is done to a flow before it is freed. */
void worker_leave(struct worker *w, struct flow *f)
{
	note_brief(w, f);
	list_remove(&f->node);
	atomic_fetch_sub(&w->load, 1);
	(void)worker_has_reserve(w); /* two descriptors have become free */
}

static void worker_read_mail(struct worker *w)
{
	struct list mail;

	if (!atomic_load_explicit(&w->has_mail, memory_order_relaxed))
		return;
	pthread_mutex_lock(&w->lock);
	list_take(&mail, &w->inbox);
	atomic_store(&w->has_mail, 0);
	pthread_mutex_unlock(&w->lock);
	while (!list_empty(&mail)) {
		struct flow *f = container_of(mail.next, struct flow, node);

		list_remove(&f->node);
		flow_adopt(f, w);
		if (atomic_load_explicit(&w->obeyed, memory_order_relaxed) ==
		    WORKER_END)
			flow_stop(f);
	}
}

static void worker_obey(struct worker *w)
{
	int order = atomic_load_explicit(&w->order, memory_order_acquire);
	int obeyed = atomic_load_explicit(&w->obeyed, memory_order_relaxed);

	if (order == obeyed)
		return;
	if (obeyed < WORKER_HUSH)
		while (!list_empty(&w->acceptors))
			acceptor_free(container_of(w->acceptors.next,
						   struct acceptor, node));
	if (order == WORKER_END)
		list_each (node, &w->flows)
			flow_stop(container_of(node, struct flow, node));
	atomic_store(&w->obeyed, order);
	server_ring(w->server);
}

static bool worker_is_over(const struct worker *w)
{
	return atomic_load_explicit(&w->obeyed, memory_order_relaxed) >=
		       WORKER_FINISH &&
	       list_empty(&w->flows);
}

static void *worker_main(void *arg)
{
	static struct ratelimit limit;
	struct worker *w = arg;
	int err;

	server_wait_start(w->server);
	while (!worker_is_over(w)) {
		err = loop_turn(&w->loop, -1);
		if (err)
			log_ratelimited(&limit, LOG_ERROR, "epoll_wait: %s",
					strerror(-err));
		worker_obey(w);
		worker_read_mail(w); /* all of it came before the last order */
	}
	server_ring(w->server);
	return NULL;
}

/* Return: 0, or a negative errno. */
int worker_start(struct worker *w)
{
	char name[16];
	int err = pthread_create(&w->thread, NULL, worker_main, w);

	if (err)
		return -err;
	snprintf(name, sizeof(name), "sluice/%u", w->index);
	(void)pthread_setname_np(w->thread, name);
	return 0;
}

void worker_join(struct worker *w)
{
	(void)pthread_join(w->thread, NULL);
}
