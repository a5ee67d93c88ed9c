/* SPDX-License-Identifier: MIT */
/*
 * A loop, what relays share, and relays on it.
 */
#include "unit/rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/sock.h"
#include "relay/conduit.h"
#include "relay/engine.h"

void rig_open_sized(struct rig *g, enum relay_mode mode, size_t buf_size,
		    size_t pipe_size, unsigned pipe_limit)
{
	*g = (struct rig){ .fds = open_fds() };
	ck_assert_int_eq(loop_init(&g->loop), 0);
	ck_assert_int_eq(relay_env_init(&g->env, &g->loop, buf_size, pipe_size,
					pipe_limit),
			 0);
	g->env.mode = mode;
	if (engine_of(mode))
		ck_assert_int_eq(engine_of(mode)->open(&g->env), 0);
}

/* Called outside of tests. Return: 0, or why there is no io_uring. */
static int try_uring(void)
{
	struct rig g = { 0 };
	int err = loop_init(&g.loop);

	if (err)
		return err;
	err = relay_env_init(&g.env, &g.loop, RIG_BUF_SIZE, RIG_PIPE_SIZE, 1);
	if (!err) {
		err = engine_of(RELAY_URING)->open(&g.env);
		relay_env_fini(&g.env);
	}
	loop_fini(&g.loop);
	return err;
}

int rig_modes(void)
{
	static int modes;
	int err;

	if (modes)
		return modes;
	modes = RELAY_URING;
	if (!engine_of(RELAY_URING))
		return modes;
	err = try_uring();
	if (err)
		fprintf(stderr, "# io_uring refused, not tested: %s\n",
			strerror(-err));
	else
		modes++;
	return modes;
}

void rig_open(struct rig *g, enum relay_mode mode)
{
	rig_open_sized(g, mode, RIG_BUF_SIZE, RIG_PIPE_SIZE, RIG_PIPE_LIMIT);
}

uint64_t tally_in(const struct relay_stats *t)
{
	return counter_read(&t->splice_in.bytes) +
	       counter_read(&t->recv.bytes) + counter_read(&t->discard.bytes);
}

uint64_t tally_out(const struct relay_stats *t)
{
	uint64_t n = counter_read(&t->splice_out.bytes) +
		     counter_read(&t->send.bytes) +
		     counter_read(&t->discard.bytes);

	for (int i = 0; i < DROPS; i++)
		n += counter_read(&t->dropped[i]);
	return n;
}

void rig_close(struct rig *g)
{
	const struct relay_stats *t = &g->env.stats;

	if (atomic_load(&g->spins))
		rig_rest(g);
	for (struct wire *w = g->wires; w; w = w->next) {
		ck_assert_int_eq(atomic_load(&w->done), 1);
		ck_assert(relay_is_unlinked(&w->relay));
		wire_hang_up(w);
	}
	ck_assert_uint_eq(tally_in(t), tally_out(t));
	ck_assert_uint_eq(counter_read(&t->pipes_out), 0);
	ck_assert_uint_eq(counter_read(&t->buffers_now), 0);
	ck_assert_uint_eq(counter_read(&t->pipes_now), g->env.pipes.freelist.n);
	relay_env_fini(&g->env);
	ck_assert_uint_eq(counter_read(&t->pipes_now), 0);
	loop_fini(&g->loop);
	ck_assert_int_eq(open_fds(), g->fds);
}

void wire_plug(struct rig *g, struct wire *w)
{
	*w = (struct wire){ .rig = g, .next = g->wires };
	g->wires = w;
	relay_init(&w->relay, &g->env);
	for (int i = 0; i < 2; i++) {
		int fd[2];

		tcp_pair(fd);
		peer_nodelay(fd[0]);
		ck_assert_int_eq(sock_prepare(fd[1]), 0);
		ck_assert_int_eq(sock_nonblock(fd[1]), 0);
		w->peer[i] = fd[0];
		w->relay.side[i].watch.fd = fd[1];
	}
}

/* As every owner does it: what was cut short must not look whole. An owner may
 * free it. */
static void wire_done(struct relay *r)
{
	struct wire *w = container_of(r, struct wire, relay);

	ck_assert_msg(relay_is_unlinked(r), "done, and still linked");
	w->clean = relay_is_clean(r);
	for (unsigned i = 0; i < 2; i++) {
		w->how[i] = relay_how(r, i);
		loop_unwatch(&w->rig->loop, &r->side[i].watch);
		sock_close(r->side[i].watch.fd, !w->clean);
	}
	atomic_fetch_add(&w->done, 1);
}

void wire_start(struct wire *w)
{
	for (int i = 0; i < 2; i++) {
		struct watch *side = &w->relay.side[i].watch;

		ck_assert_int_eq(loop_watch(&w->rig->loop, side, side->fd,
					    LOOP_SOCKET, pump_ready),
				 0);
	}
	wire_take_over(w);
}

void wire_take_over(struct wire *w)
{
	relay_start(&w->relay, wire_done);
}

void wire_lay(struct rig *g, struct wire *w)
{
	wire_plug(g, w);
	wire_start(w);
}

void wire_hang_up(struct wire *w)
{
	for (int i = 0; i < 2; i++)
		w->peer[i] = close_fd(w->peer[i]);
}

size_t lane_holds(const struct lane *l)
{
	return (l->conduit ? l->conduit->held : 0) + l->urgent;
}

/* Memory is bounded by one fill a lane: FAULTS 8. */
static void check_lanes(const struct wire *w)
{
	const counter *lost = &w->rig->env.stats.dropped[DROP_pipe_broken];

	for (int i = 0; i < 2; i++) {
		const struct lane *l = &w->relay.lane[i];

		if (l->conduit)
			ck_assert_uint_le(lane_holds(l), l->conduit->size);
		if (!w->relay.side[!i].gone && !counter_read(lost))
			ck_assert_uint_eq(l->read - l->delivered, lane_holds(l));
	}
}

static void turn(struct rig *g, int timeout_ms)
{
	ck_assert_int_eq(loop_turn(&g->loop, timeout_ms), 0);
	for (const struct wire *w = g->wires; w; w = w->next)
		if (!atomic_load(&w->done))
			check_lanes(w);
}

void rig_turn(struct rig *g)
{
	turn(g, 0);
}

void rig_turns(struct rig *g, int n)
{
	while (n-- > 0)
		turn(g, 0);
}

void rig_settle(struct rig *g)
{
	uint64_t before;
	int quiet = 0;

	while (quiet < 3) {
		before = tally_in(&g->env.stats) + tally_out(&g->env.stats);
		turn(g, 10);
		quiet = tally_in(&g->env.stats) + tally_out(&g->env.stats) ==
						before &&
					!loop_pending(&g->loop)
				? quiet + 1
				: 0;
	}
}

void rig_finish(struct rig *g, struct wire *w)
{
	int64_t end = now_ms() + SOON_MS;

	while (!atomic_load(&w->done)) {
		ck_assert_msg(now_ms() < end, "the relay does not end");
		turn(g, 100);
	}
}

static void ambush_ready(struct watch *w)
{
	struct rig *g = container_of(w, struct rig, ambush);

	loop_unwatch(&g->loop, w);
	w->fd = close_fd(w->fd);
	g->spring(g->arg);
}

void rig_ambush(struct rig *g, void (*spring)(void *arg), void *arg)
{
	int fd = eventfd(1, EFD_CLOEXEC);

	g->spring = spring;
	g->arg = arg;
	ck_assert_int_eq(
		loop_watch(&g->loop, &g->ambush, fd, EPOLLIN, ambush_ready), 0);
}

static void *spin(void *arg)
{
	struct rig *g = arg;

	while (!atomic_load(&g->stop))
		turn(g, 1000);
	return NULL;
}

void rig_spin(struct rig *g)
{
	atomic_store(&g->stop, false);
	ck_assert_int_eq(pthread_create(&g->thread, NULL, spin, g), 0);
	atomic_store(&g->spins, true);
}

void rig_rest(struct rig *g)
{
	atomic_store(&g->stop, true);
	loop_wake(&g->loop);
	pthread_join(g->thread, NULL);
	atomic_store(&g->spins, false);
}

uint64_t rig_stall(struct rig *g, struct wire *w, int i, unsigned stream)
{
	int64_t end = now_ms() + SOON_MS;
	uint64_t said = 0;

	do {
		ck_assert_msg(now_ms() < end, "the lane never holds anything");
		rig_spin(g);
		said += say_until_full(w->peer[i], stream, said, 50);
		rig_rest(g);
	} while (!lane_holds(&w->relay.lane[i]));
	return said;
}

void wire_wait(struct wire *w)
{
	int64_t end = now_ms() + SOON_MS;

	while (!atomic_load(&w->done)) {
		ck_assert_msg(now_ms() < end, "the relay does not end");
		sleep_us(200);
	}
}

void say(int fd, unsigned stream, uint64_t offset, size_t n)
{
	char *buf = malloc(n);

	ck_assert_ptr_nonnull(buf);
	stamp_fill(buf, stream, offset, n);
	ck_assert_int_eq(peer_send_all(fd, buf, n, SOON_MS), 0);
	free(buf);
}

void hear(int fd, unsigned stream, uint64_t offset, size_t n)
{
	char *buf = malloc(n);
	char why[STAMP_WHY];
	ssize_t got;

	ck_assert_ptr_nonnull(buf);
	got = peer_recv_all(fd, buf, n, SOON_MS);
	ck_assert_msg(got == (ssize_t)n, "%zd bytes of %zu", got, n);
	if (stamp_check(buf, stream, offset, n) >= 0)
		ck_abort_msg("%s", stamp_explain(why, sizeof(why), buf, stream,
						 offset, n));
	free(buf);
}

uint64_t say_until_full(int fd, unsigned stream, uint64_t offset, int ms)
{
	int64_t quiet = now_ms() + ms;
	uint64_t said = 0;
	char buf[8192];

	while (now_ms() < quiet) {
		ssize_t n;

		stamp_fill(buf, stream, offset + said, sizeof(buf));
		n = send(fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			said += (uint64_t)n;
			quiet = now_ms() + ms;
		} else {
			ck_assert_int_eq(errno, EAGAIN);
			sleep_ms(1);
		}
	}
	return said;
}

void await_acked(int fd)
{
	int64_t end = now_ms() + SOON_MS;

	while (peer_unacked(fd)) {
		ck_assert_msg(now_ms() < end, "%d bytes are not acknowledged",
			      peer_unacked(fd));
		sleep_us(100);
	}
}
