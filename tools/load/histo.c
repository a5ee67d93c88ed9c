/* SPDX-License-Identifier: MIT */
/*
 * histo.c - how long things took
 *
 * Below 2 * HISTO_STEPS each nanosecond has its own count. Above, the exponent
 * says how many low bits do not matter, and the bits that do choose one of
 * HISTO_STEPS counts.
 */
#include "histo.h"

static unsigned slot_of(uint64_t ns)
{
	unsigned shift = 0;

	if (ns >= 2 * HISTO_STEPS)
		shift = 56 - __builtin_clzll(ns);
	return shift * HISTO_STEPS + (ns >> shift);
}

/* The longest duration that is counted in a slot. */
static uint64_t slot_end(unsigned slot)
{
	unsigned shift = 0;

	if (slot >= 2 * HISTO_STEPS)
		shift = slot / HISTO_STEPS - 1;
	return ((uint64_t)(slot - shift * HISTO_STEPS + 1) << shift) - 1;
}

void histo_add(struct histo *h, uint64_t ns)
{
	h->n++;
	h->slow += ns > HISTO_SLOW;
	h->of[slot_of(ns)]++;
}

double histo_us(const struct histo *h, double q)
{
	uint64_t seen = 0;
	unsigned slot;

	if (!h->n)
		return 0;
	for (slot = 0; slot < sizeof(h->of) / sizeof(h->of[0]) - 1; slot++) {
		seen += h->of[slot];
		if (seen >= q * h->n)
			break;
	}
	return slot_end(slot) / 1e3;
}
