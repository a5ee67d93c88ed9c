/* SPDX-License-Identifier: MIT */
/*
 * histo.h - how long things took
 *
 * Counts per duration, in 128 steps from each power of two to the next, so
 * that no answer is more than 0.8 % off and none needs the samples.
 */
#ifndef LOAD_HISTO_H
#define LOAD_HISTO_H

#include <stdint.h>

#define HISTO_STEPS 128
#define HISTO_SLOW  35000000 /* ns: what only a delayed ACK takes */

struct histo {
	uint64_t n;    /* durations */
	uint64_t slow; /* of which above HISTO_SLOW */
	uint64_t of[58 * HISTO_STEPS];
};

void histo_add(struct histo *h, uint64_t ns);

/* Returns, in us, what the part @q (0 to 1) of all did not exceed; 0: none. */
double histo_us(const struct histo *h, double q);

#endif
