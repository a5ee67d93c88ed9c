/* SPDX-License-Identifier: MIT */
/*
 * counter.h - numbers that one thread writes and any thread may read
 *
 * There is a single writer, so an addition needs no lock and no read-modify-
 * write: a relaxed load, an add and a relaxed store are the plain instructions
 * they look like. A reader sees each counter whole, though not all of the same
 * instant.
 */
#ifndef BASE_COUNTER_H
#define BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t counter;

static inline uint64_t counter_read(const counter *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

static inline void counter_set(counter *c, uint64_t n)
{
	atomic_store_explicit(c, n, memory_order_relaxed);
}

static inline void counter_add(counter *c, uint64_t n)
{
	counter_set(c, counter_read(c) + n);
}

static inline void counter_sub(counter *c, uint64_t n)
{
	counter_set(c, counter_read(c) - n);
}

/* Raises a high-water mark. */
static inline void counter_max(counter *c, uint64_t n)
{
	if (n > counter_read(c))
		counter_set(c, n);
}

#endif /* BASE_COUNTER_H */
