/* SPDX-License-Identifier: MIT */
/*
 * Time and descriptors of this process, as tests count them.
 */
#ifndef SUPPORT_CLOCK_H
#define SUPPORT_CLOCK_H

#include <stdint.h>

/* Milliseconds of the monotonic clock. */
int64_t now_ms(void);

/* Milliseconds of cpu, user and system, that this process has used so far. */
int64_t cpu_ms(void);

void sleep_ms(int ms);
void sleep_us(int us);

/* How many descriptors this process has open. */
int open_fds(void);

#endif
