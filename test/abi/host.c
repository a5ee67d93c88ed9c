/* SPDX-License-Identifier: MIT */
/*
 * What a program that has the library does: a context, and relays in it.
 */
#include "abi/host.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

struct sluice *host_open(int mode)
{
	struct sluice_options o = SLUICE_OPTIONS_INIT;
	struct sluice *s = NULL;

	o.mode = mode;
	o.pipe_size = 65536;
	ck_assert_int_eq(sluice_new(&s, &o), 0);
	ck_assert_ptr_nonnull(s);
	return s;
}

void call_plug(struct call *c)
{
	for (int i = 0; i < 2; i++) {
		int fd[2];

		tcp_pair(fd);
		peer_nodelay(fd[0]);
		c->peer[i] = fd[0];
		c->side[i] = fd[1];
	}
}

void call_make(struct sluice *s, struct call *c, void *userdata,
	       unsigned timeout_ms)
{
	struct sluice_relay_options o = SLUICE_RELAY_OPTIONS_INIT;

	o.userdata = userdata;
	o.timeout_ms = timeout_ms;
	call_plug(c);
	ck_assert_int_eq(sluice_relay(s, c->side[0], c->side[1], &o, &c->id), 0);
}

void call_hang_up(struct call *c)
{
	for (int i = 0; i < 2; i++) {
		if (c->peer[i] >= 0)
			close(c->peer[i]);
		c->peer[i] = -1;
	}
}

void host_pop(struct sluice *s, struct sluice_result *r, int quiet_ms)
{
	int got;

	while (!(got = sluice_pop(s, r))) {
		ck_assert_msg(peer_wait(sluice_fd(s), POLLIN, quiet_ms) == POLLIN,
			      "a stall: nothing to do for %d ms", quiet_ms);
		ck_assert_int_eq(sluice_dispatch(s, 0), 0);
	}
	ck_assert_int_eq(got, 1);
}

int host_serve(struct sluice *s, int ms)
{
	int64_t end = now_ms() + ms, left;
	struct sluice_result r = SLUICE_RESULT_INIT;
	int times = 0;

	while ((left = end - now_ms()) > 0) {
		if (peer_wait(sluice_fd(s), POLLIN, (int)left) < 0)
			break;
		ck_assert_int_eq(sluice_dispatch(s, 0), 0);
		ck_assert_int_eq(sluice_pop(s, &r), 0);
		times++;
	}
	return times;
}
