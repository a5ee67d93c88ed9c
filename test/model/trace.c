/* SPDX-License-Identifier: MIT */
/*
 * trace.c - what happened, kept in case something goes wrong
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "model/sim.h"
#include "model/world.h"
#include "support/suite.h"

/* The last so many steps; enough for any schedule that was enumerated. */
#define STEPS 1024

static struct {
	const char *what;
	int who;
	long a, b;
} steps[STEPS];
static unsigned n_steps;

void trace_reset(void)
{
	n_steps = 0;
}

/* @what must be a string that stays. */
void trace(const char *what, int who, long a, long b)
{
	unsigned i = n_steps++ % STEPS;

	steps[i].what = what;
	steps[i].who = who;
	steps[i].a = a;
	steps[i].b = b;
}

static void print(void)
{
	unsigned i = n_steps > STEPS ? n_steps - STEPS : 0;

	for (; i < n_steps; i++)
		support_note("  %s [%d] %ld %ld", steps[i % STEPS].what,
			     steps[i % STEPS].who, steps[i % STEPS].a,
			     steps[i % STEPS].b);
}

/*
 * An invariant does not hold: tells which, and how it came to that, and ends
 * the test. With MODEL_FAIL_FAST set it ends the program, for mutants.py.
 */
void sim_fail(const char *fmt, ...)
{
	char why[400];
	va_list ap;

	sim.on = sim.in_turn = false;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (getenv("MODEL_FAIL_FAST")) {
		printf("violated: %s\n", why);
		fflush(stdout);
		_exit(1);
	}
	print();
	world_describe();
	schedule_describe();
	ck_abort_msg("%s", why);
}
