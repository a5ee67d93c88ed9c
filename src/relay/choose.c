/* SPDX-License-Identifier: MIT */
/*
 * choose.c - which conduit a lane borrows next, in --mode=auto
 *
 * DOC: Theory of operation
 *
 * A pipe saves the copy, and its calls take a little longer: with messages of
 * 32 bytes a tenth, from about 4 KiB on less than the copy. It is also no good
 * for bulk that comes in small fragments, since each takes a slot of the pipe,
 * however few bytes it has (K1). So a lane goes by what its last fills were:
 *
 *	on buffers, until fills of 4 KiB or more in a row brought 64 KiB: then
 *	  pipes; twice as much, up to 1 MiB, for each time that less than 1 MiB
 *	  went by pipe;
 *	on pipes, until four in a row were small: then buffers;
 *	on pipes, until two in a row ended because the slots had run out with
 *	  less than 2 KiB in each: then buffers, and pipes are tried again
 *	  after so many bytes.
 *
 * What ends a run of one kind is not what begins one of the other: less than
 * 2 KiB are small for a pipe, and it takes several of 4 KiB to try one.
 * A lane whose source has a little of both soon stays on buffers.
 */
#include <poll.h>

#include "base/util.h"
#include "relay/lane.h"

#define SMALL_RUN 4
#define THIN_RUN  2

/* A fill of a buffer that may be part of bulk; how much bulk it takes, and how
 * often that is doubled. */
#define FULL_FILL ((size_t)4 << 10)
#define FULL_RUN  ((uint64_t)64 << 10)
#define DOUBLINGS 4

/* So much was worth the change to pipes. */
#define WORTH_IT ((uint64_t)1 << 20)

/* Less than this in a pipe would have been better off in a buffer. */
#define SMALL_FILL 2048

/* Bytes a slot below which a pipe is no gain; and until it is tried again. */
#define THIN_SLOT   2048
#define THIN_PERIOD ((uint64_t)64 << 20)

/* Whether all slots of a pipe are taken: then it is not writable. */
static bool is_out_of_slots(const struct pipe *p)
{
	struct pollfd w = { .fd = p->in, .events = POLLOUT };

	return poll(&w, 1, 0) == 0;
}

static void go_to(struct relay *r, struct lane *l, bool pipe,
		  enum relay_choice why)
{
	l->use_pipe = pipe;
	l->why = (uint8_t)why;
	l->run = 0;
	l->full_since = l->read;
	counter_add(&r->env->stats.choices[why], 1);
}

static void learn_from_buffer(struct relay *r, struct lane *l, size_t n)
{
	if (n < min_size(l->conduit->size, FULL_FILL) || l->use_pipe)
		l->full_since = l->read; /* or it wants pipes and gets none */
	else if (l->read - l->full_since >= FULL_RUN << l->backoff &&
		 l->read >= l->no_pipe_before)
		go_to(r, l, true, CHOICE_bulk);
}

static void learn_from_pipe(struct relay *r, struct lane *l, size_t n)
{
	const struct pipe *p = to_pipe(l->conduit);
	enum relay_choice why = CHOICE_bulk;

	if (n < SMALL_FILL)
		why = CHOICE_small;
	else if (n < p->conduit.size / PIPE_SLOT * THIN_SLOT) {
		/* After a pause it may well be all that there was. */
		if (!l->more_expected && l->run_of == CHOICE_thin)
			return;
		if (l->more_expected && is_out_of_slots(p))
			why = CHOICE_thin;
	}

	if (why == CHOICE_bulk || why != l->run_of)
		l->run = 0;
	l->run_of = (uint8_t)why;
	if (why == CHOICE_bulk)
		return;
	l->run++;
	if (why == CHOICE_small && l->run >= SMALL_RUN) {
		if (l->read - l->full_since >= WORTH_IT)
			l->backoff = 0;
		else if (l->backoff < DOUBLINGS)
			l->backoff++;
		go_to(r, l, false, CHOICE_small);
	} else if (why == CHOICE_thin && l->run >= THIN_RUN) {
		l->no_pipe_before = l->read + THIN_PERIOD;
		go_to(r, l, false, CHOICE_thin);
	}
}

/* Tells what the lane's last fill was: @n bytes, all that were read. */
void choose_learn(struct relay *r, struct lane *l, size_t n)
{
	if (l->conduit->ops->is_pipe)
		learn_from_pipe(r, l, n);
	else
		learn_from_buffer(r, l, n);
	l->more_expected = true;
}
