/* SPDX-License-Identifier: MIT */
/*
 * Threads that send, or receive and check, stamped bytes at a pace.
 */
#include "support/pacer.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "support/peer.h"

static void failed(struct pacer *p, const char *doing, int error)
{
	p->error = error;
	snprintf(p->why, sizeof(p->why),
		 "%s stream %u, %" PRIu64 " of %" PRIu64 " bytes done: %s",
		 doing, p->stream, p->done, p->size, strerror(-error));
}

/* Room of the next call. */
static size_t next_chunk(const struct pacer *p)
{
	uint64_t left = p->size - p->done;

	return left < p->chunk ? left : p->chunk;
}

static void send_all(struct pacer *p, char *buf)
{
	while (p->done < p->size) {
		size_t n = next_chunk(p);
		int r;

		stamp_fill(buf, p->stream, p->offset + p->done, n);
		r = peer_send_all(p->fd, buf, n, p->timeout_ms);
		if (r) {
			failed(p, "sending", r);
			return;
		}
		p->done += n;
		if (p->pause_us)
			sleep_us(p->pause_us);
	}
	if (p->end && shutdown(p->fd, SHUT_WR))
		failed(p, "shutting down", -errno);
}

/* As recv(), but with a deadline and a negative errno. */
static ssize_t recv_some(struct pacer *p, char *buf, size_t n)
{
	int r = peer_wait(p->fd, POLLIN, p->timeout_ms);
	ssize_t k;

	if (r < 0)
		return r;
	k = recv(p->fd, buf, n, MSG_DONTWAIT);
	return k < 0 ? -errno : k;
}

static void recv_all(struct pacer *p, char *buf)
{
	while (p->done < p->size) {
		ssize_t n = recv_some(p, buf, next_chunk(p)), bad;
		uint64_t at = p->offset + p->done;

		if (n <= 0) {
			failed(p, "receiving", n ? (int)n : -ENODATA);
			return;
		}
		bad = stamp_check(buf, p->stream, at, n);
		if (bad >= 0) {
			p->error = -EBADMSG;
			p->done += bad;
			stamp_explain(p->why, sizeof(p->why), buf, p->stream,
				      at, n);
			return;
		}
		p->done += n;
		if (p->pause_us)
			sleep_us(p->pause_us);
	}
	if (p->end) {
		int r = peer_expect_eof(p->fd, p->timeout_ms);

		if (r)
			failed(p, "expecting the end of", r);
	}
}

static void run(struct pacer *p, void (*all)(struct pacer *, char *))
{
	char *buf = malloc(p->chunk);

	if (!buf) {
		failed(p, "starting", -ENOMEM);
		return;
	}
	if (p->delay_ms)
		sleep_ms(p->delay_ms);
	all(p, buf);
	free(buf);
}

static void *sender(void *arg)
{
	run(arg, send_all);
	return NULL;
}

static void *receiver(void *arg)
{
	run(arg, recv_all);
	return NULL;
}

static void start(struct pacer *p, void *(*body)(void *))
{
	if (!p->chunk)
		p->chunk = 65536;
	if (!p->timeout_ms)
		p->timeout_ms = 10000;
	p->done = 0;
	p->error = 0;
	p->why[0] = 0;
	if (pthread_create(&p->thread, NULL, body, p))
		ck_abort_msg("no thread for a pacer");
}

void pacer_start_send(struct pacer *p)
{
	start(p, sender);
}

void pacer_start_recv(struct pacer *p)
{
	start(p, receiver);
}

int pacer_wait(struct pacer *p)
{
	pthread_join(p->thread, NULL);
	return p->error;
}

void pacer_join(struct pacer *p)
{
	if (pacer_wait(p))
		ck_abort_msg("%s", p->why);
}
