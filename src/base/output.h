/* SPDX-License-Identifier: MIT */
/*
 * output.h - text for a descriptor that may block, written by a thread
 *
 * No caller ever waits for the descriptor: output_put() copies into a queue, and
 * a thread of the output's own calls write(2). What the queue has no room for
 * is dropped and counted; so is what write(2) refuses.
 */
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct output_queue - texts in the order in which they came, in a ring
 * @used:	bytes from @head on; the first text leaves once it is written
 * @texts:	how many they are
 * @lost:	texts dropped behind the last of them
 */
struct output_queue {
	char *ring;
	size_t size, head, used;
	unsigned texts, lost;
};

/**
 * struct output - a descriptor, its queue and its thread
 * @name:	of the thread
 * @noun:	what a text is, in the line that tells how many were dropped;
 *		NULL for none
 * @lock:	for all that follows, but for what is the writer's
 * @started:	there is a writer: the thread, or output_flush()
 * @given_up:	output_flush() has waited too long; nothing was written since
 * @busy:	the writer has taken something, and is not done with it
 * @late:	the first text counts as dropped already; see output_drop_late()
 * @tried_ns:	when a thread could not be made
 * @moved_ns:	when bytes were last written, or the queue was last empty
 * @untold, @torn: the writer's: texts dropped that no line has told of, and
 *		whether what was written last is a part of a text
 * @until_ns:	the writer's: when it gives up; 0 for never
 */
struct output {
	int fd;
	const char *name, *noun;
	pthread_mutex_t lock;
	pthread_cond_t news;
	struct output_queue queue;
	bool started, given_up, busy, late;
	uint64_t tried_ns, moved_ns, dropped;
	unsigned untold;
	bool torn;
	uint64_t until_ns;
};

#define OUTPUT_INIT(fd_, name_, noun_, ring_)                  \
	{                                                      \
		.fd = (fd_), .name = (name_), .noun = (noun_), \
		.lock = PTHREAD_MUTEX_INITIALIZER,             \
		.news = PTHREAD_COND_INITIALIZER, .queue = {   \
			.ring = (ring_),                       \
			.size = sizeof(ring_),                 \
		}                                              \
	}

int output_start(struct output *o);
bool output_put(struct output *o, const char *text, size_t len);
bool output_flush(struct output *o, unsigned quiet_ms, unsigned total_ms);

bool output_is_empty(struct output *o);
unsigned output_drop_late(struct output *o, unsigned ms);
uint64_t output_dropped(struct output *o);

#endif /* BASE_OUTPUT_H */
