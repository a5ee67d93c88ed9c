/* SPDX-License-Identifier: MIT */
/*
 * Stands between the ring and liburing, by -Wl,--wrap: a kernel, or a process,
 * that has no memory for this or that.
 */
#ifndef UNIT_RING_SHIM_H
#define UNIT_RING_SHIM_H

#include <stdbool.h>

#define SHIM_FOR_EVER (-1U / 2)

/**
 * struct shim - what there is no memory for
 * @refusal:	each call that submits fails so, a negative errno; 0: none does;
 *		@refusals: how many have
 * @takes:	or takes so many requests at most; 0: all
 * @op, @error:	requests of this kind fail so, the next @times; @failed: have
 * @buffers:	so many are left to be had; below 0: any number
 * @allocation:	the calloc(3) that fails, counted from 1; 0: none does
 */
struct shim {
	int refusal;
	unsigned refusals, takes;
	int op, error;
	unsigned times, failed;
	int buffers;
	unsigned allocation;
};

extern struct shim shim;

#endif /* UNIT_RING_SHIM_H */
