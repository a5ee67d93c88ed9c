/* SPDX-License-Identifier: MIT */
/*
 * output.c - text for a descriptor that may block, written by a thread
 *
 * The descriptor may be shared with other programs, so it must not be made
 * nonblocking; and poll(2) does not tell whether a write(2) blocks: a terminal
 * counts as writable with room for one byte, a file always. So write(2) has a
 * thread of its own, which holds no lock meanwhile.
 *
 * The thread blocks all signals: SIGPIPE and SIGXFSZ do not end the program,
 * SIGTTOU does not stop it, and no handler runs here.
 */
#include "base/output.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "base/util.h"

/* A thread that cannot be made is tried again after so long. */
#define START_RETRY_NS NS_PER_SEC

/* Between two attempts at a descriptor that says EAGAIN: poll(2) calls a
 * terminal writable when the room is not enough for a newline. */
#define ROOM_RETRY_NS (10 * NS_PER_MS)

/* How often output_flush() looks, and how often it interrupts a write(2). */
#define FLUSH_LOOK_NS (NS_PER_MS / 5)
#define FLUSH_TICK_US 50000

/* What precedes a text in the ring; @lost were dropped before it. */
struct frame {
	unsigned len, lost;
};

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = { .tv_nsec = (long)ns };

	nanosleep(&ts, NULL);
}

/* Copies @n bytes to place @at behind the first in use. */
static void ring_write(struct output_queue *q, size_t at, const void *from,
		       size_t n)
{
	size_t to = (q->head + at) % q->size;
	size_t first = min_size(n, q->size - to);

	memcpy(q->ring + to, from, first);
	memcpy(q->ring, (const char *)from + first, n - first);
}

static void ring_read(const struct output_queue *q, size_t at, void *to, size_t n)
{
	size_t from = (q->head + at) % q->size;
	size_t first = min_size(n, q->size - from);

	memcpy(to, q->ring + from, first);
	memcpy((char *)to + first, q->ring, n - first);
}

/* Bytes were written: whoever waits for the end may go on waiting. */
static void note_progress(struct output *o)
{
	pthread_mutex_lock(&o->lock);
	o->moved_ns = now_ns();
	o->given_up = false;
	pthread_mutex_unlock(&o->lock);
}

static bool is_over(const struct output *o)
{
	return o->until_ns && now_ns() >= o->until_ns;
}

/* Return: how many of @n bytes were written; all, or write(2) has failed. */
static size_t write_bytes(struct output *o, const char *text, size_t n)
{
	struct pollfd p = { .fd = o->fd, .events = POLLOUT };
	size_t done = 0;

	while (done < n && !is_over(o)) {
		ssize_t got = write(o->fd, text + done, n - done);

		if (got > 0) {
			done += (size_t)got;
			note_progress(o);
		} else if (got < 0 && errno == EAGAIN) {
			(void)poll(&p, 1, -1);
			sleep_ns(ROOM_RETRY_NS);
		} else if (got == 0 || errno != EINTR) {
			break;
		}
	}
	return done;
}

/* Says what is missing here. Return: whether that was written. */
static bool write_loss(struct output *o)
{
	char note[64];
	int len;

	if (o->torn && write_bytes(o, "\n", 1) != 1)
		return false;
	o->torn = false;
	if (!o->untold || !o->noun)
		return true;
	len = snprintf(note, sizeof(note), "sluice: %u %s dropped\n", o->untold,
		       o->noun);
	if (write_bytes(o, note, (size_t)len) != (size_t)len) {
		o->torn = true;
		return false;
	}
	o->untold = 0;
	return true;
}

/*
 * Writes the first text. In pieces of PIPE_BUF, so that a line is one write(2)
 * and does not mix with those of other programs on the same pipe.
 */
static bool write_first(struct output *o, size_t len)
{
	char piece[PIPE_BUF];
	size_t at = 0, n, done;

	while (at < len) {
		n = min_size(len - at, sizeof(piece));
		ring_read(&o->queue, sizeof(struct frame) + at, piece, n);
		done = write_bytes(o, piece, n);
		at += done;
		if (done < n) {
			o->torn = at > 0;
			return false;
		}
	}
	return true;
}

/* Return: what to write next; of length 0 if there is only a loss to tell. */
static struct frame take_first(struct output *o)
{
	struct output_queue *q = &o->queue;
	struct frame f = { 0 };

	pthread_mutex_lock(&o->lock);
	while (!q->used && !q->lost)
		pthread_cond_wait(&o->news, &o->lock);
	if (q->used) {
		ring_read(q, 0, &f, sizeof(f));
	} else {
		f.lost = q->lost;
		q->lost = 0;
	}
	o->busy = true;
	pthread_mutex_unlock(&o->lock);
	return f;
}

/* With the lock. */
static void remove_first(struct output *o, size_t len, bool written)
{
	struct output_queue *q = &o->queue;

	if (!written && !o->late)
		o->dropped++;
	o->late = false;
	q->head = (q->head + sizeof(struct frame) + len) % q->size;
	q->used -= sizeof(struct frame) + len;
	q->texts--;
}

static void write_next(struct output *o)
{
	struct frame f = take_first(o);
	bool written;

	o->untold += f.lost;
	written = write_loss(o) && write_first(o, f.len);
	if (!written && f.len)
		o->untold++;
	pthread_mutex_lock(&o->lock);
	if (f.len && (written || !is_over(o)))
		remove_first(o, f.len, written);
	o->busy = false;
	pthread_mutex_unlock(&o->lock);
}

static void *output_main(void *arg)
{
	struct output *o = arg;

	(void)pthread_setname_np(pthread_self(), o->name);
	for (;;)
		write_next(o);
	return NULL;
}

/* With the lock. */
static int start_thread(struct output *o)
{
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, output_main, o);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		o->tried_ns = now_ns();
		return -err;
	}
	/* It may be in write(2) for ever: it ends with the process. */
	pthread_detach(thread);
	o->started = true;
	return 0;
}

/**
 * output_start() - make the thread now, rather than for the first text
 *
 * Return: 0 or a negative errno. Then texts wait in the queue; output_put()
 * tries again, and output_flush() does without.
 */
int output_start(struct output *o)
{
	int err = 0;

	pthread_mutex_lock(&o->lock);
	if (!o->started)
		err = start_thread(o);
	pthread_mutex_unlock(&o->lock);
	return err;
}

/* With the lock. Return: whether there was room. */
static bool append(struct output *o, const char *text, size_t len)
{
	struct output_queue *q = &o->queue;
	struct frame f = { .len = (unsigned)len, .lost = q->lost };

	if (len > q->size || sizeof(f) + len > q->size - q->used) {
		q->lost++;
		o->dropped++;
		return false;
	}
	if (!q->used)
		o->moved_ns = now_ns();
	ring_write(q, q->used, &f, sizeof(f));
	ring_write(q, q->used + sizeof(f), text, len);
	q->used += sizeof(f) + len;
	q->texts++;
	q->lost = 0;
	return true;
}

/**
 * output_put() - have @text written, whole, behind what was put before
 *
 * Any thread may. It takes a copy and does not wait.
 *
 * Return: whether there was room; if not, @text is dropped and counted.
 */
bool output_put(struct output *o, const char *text, size_t len)
{
	bool room;

	if (!len)
		return true;
	pthread_mutex_lock(&o->lock);
	room = append(o, text, len);
	if (!o->started &&
	    (!o->tried_ns || now_ns() - o->tried_ns >= START_RETRY_NS))
		(void)start_thread(o);
	pthread_cond_signal(&o->news);
	pthread_mutex_unlock(&o->lock);
	return room;
}

bool output_is_empty(struct output *o)
{
	bool empty;

	pthread_mutex_lock(&o->lock);
	empty = !o->queue.used && !o->queue.lost && !o->busy;
	pthread_mutex_unlock(&o->lock);
	return empty;
}

uint64_t output_dropped(struct output *o)
{
	uint64_t n;

	pthread_mutex_lock(&o->lock);
	n = o->dropped;
	pthread_mutex_unlock(&o->lock);
	return n;
}

/**
 * output_drop_late() - drop what waits, if no byte was written for @ms
 *
 * The first text may be in a write(2) already, which cannot be taken back; it
 * counts as dropped all the same, once.
 *
 * Return: how many texts were dropped.
 */
unsigned output_drop_late(struct output *o, unsigned ms)
{
	struct output_queue *q = &o->queue;
	unsigned n = 0;
	struct frame f;

	pthread_mutex_lock(&o->lock);
	if (q->used && now_ns() - o->moved_ns >= ms * NS_PER_MS) {
		ring_read(q, 0, &f, sizeof(f));
		n = q->texts - o->late;
		o->late = true;
		o->dropped += n;
		q->used = sizeof(f) + f.len;
		q->texts = 1;
	}
	pthread_mutex_unlock(&o->lock);
	return n;
}

static void interrupt(int number)
{
}

/*
 * Writes what is queued without a thread, where none can be made. A timer
 * breaks a write(2) that blocks: no other signal comes through, SIGPIPE and
 * SIGXFSZ least of all.
 */
static void write_here(struct output *o, uint64_t until_ns)
{
	struct itimerval tick = { .it_value.tv_usec = FLUSH_TICK_US,
				  .it_interval.tv_usec = FLUSH_TICK_US };
	struct sigaction act = { .sa_handler = interrupt }, act_before;
	sigset_t mask;

	sigfillset(&mask);
	sigdelset(&mask, SIGALRM);
	sigaction(SIGALRM, &act, &act_before);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	setitimer(ITIMER_REAL, &tick, NULL);
	o->until_ns = until_ns;
	while (!output_is_empty(o) && !is_over(o))
		write_next(o);
	o->until_ns = 0;
	tick = (struct itimerval){ 0 };
	setitimer(ITIMER_REAL, &tick, NULL);
	sigaction(SIGALRM, &act_before, NULL);
	/* The mask stays: SIGPIPE may be pending. */
}

/* Return: whether there is a thread; if not, it is the caller who writes. */
static bool has_thread(struct output *o)
{
	bool has = true;

	pthread_mutex_lock(&o->lock);
	if (!o->started && start_thread(o)) {
		o->started = true; /* so that output_put() makes none */
		has = false;
	}
	pthread_mutex_unlock(&o->lock);
	return has;
}

/* Return: whether to stop waiting, since no byte was written since @quiet_ns. */
static bool is_stuck(struct output *o, uint64_t since_ns, uint64_t quiet_ns)
{
	bool stuck;

	pthread_mutex_lock(&o->lock);
	if (o->moved_ns > since_ns)
		since_ns = o->moved_ns;
	if (now_ns() - since_ns >= quiet_ns)
		o->given_up = true;
	stuck = o->given_up;
	pthread_mutex_unlock(&o->lock);
	return stuck;
}

/**
 * output_flush() - wait until all is written; for the end of the program
 * @quiet_ms:	give up when no byte has been written for so long
 * @total_ms:	give up after so long
 *
 * It gives up immediately if it has done so before and nothing has been
 * written since. One thread only may call it.
 *
 * Return: whether all is written, or dropped.
 */
bool output_flush(struct output *o, unsigned quiet_ms, unsigned total_ms)
{
	uint64_t start = now_ns(), until = start + total_ms * NS_PER_MS;

	if (output_is_empty(o))
		return true;
	if (!has_thread(o)) {
		write_here(o, start + quiet_ms * NS_PER_MS);
		pthread_mutex_lock(&o->lock);
		o->started = false;
		pthread_mutex_unlock(&o->lock);
		return output_is_empty(o);
	}
	while (!output_is_empty(o)) {
		if (is_stuck(o, start, quiet_ms * NS_PER_MS) || now_ns() >= until)
			return false;
		sleep_ns(FLUSH_LOOK_NS);
	}
	return true;
}
