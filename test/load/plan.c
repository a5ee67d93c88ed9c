/* SPDX-License-Identifier: MIT */
/*
 * plan.c - what the two ends of one connection are going to do.
 */
#include "load/plan.h"

const char *const kind_names[KINDS] = { "bulk", "pingpong", "answer", "speech",
					"silent" };
const char *const leave_names[] = { "FIN", "close", "reset" };

struct dice {
	uint64_t state;
};

static uint64_t throw(struct dice * d, uint64_t n)
{
	d->state ^= d->state >> 12;
	d->state ^= d->state << 25;
	d->state ^= d->state >> 27;
	return ((d->state * UINT64_C(0x2545f4914f6cdd1d)) >> 20) % n;
}

static bool chance(struct dice *d, unsigned percent)
{
	return throw(d, 100) < percent;
}

/* Of every order of magnitude up to @most as many. */
static uint64_t some(struct dice *d, uint64_t most)
{
	uint64_t order = 1;

	while (order < most && !chance(d, 20))
		order *= 4;
	return throw(d, (order < most ? order : most) + 1);
}

static void make_part(struct part *p, struct dice *d, uint64_t most)
{
	*p = (struct part){
		.total = some(d, most),
		.leave_at = NEVER,
		.stall_at = NEVER,
		.urgent_at = NEVER,
	};
	if (chance(d, 24)) {
		p->leave = chance(d, 50) ? LEAVE_CLOSE : LEAVE_RESET;
		if (chance(d, 60))
			p->leave_at = throw(d, p->total + 1);
	}
	if (chance(d, 10)) {
		p->stall_at = some(d, most);
		p->stall_ms = 1 + (unsigned) throw(d, 250);
	}
	if (p->total && chance(d, 12))
		p->urgent_at = throw(d, p->total);
}

static void make_pingpong(struct plan *p, struct dice *d, unsigned rounds)
{
	p->message = 1 + (unsigned)some(d, 2000);
	for (int i = 0; i < 2; i++)
		p->part[i].total = (uint64_t)rounds * p->message;
	for (int i = 0; i < 2; i++) {
		struct part *part = &p->part[i];

		part->urgent_at = NEVER;
		if (part->leave_at != NEVER)
			part->leave_at = throw(d, part->total + 1);
	}
}

static enum kind throw_kind(struct dice *d)
{
	static const unsigned percent[KINDS] = { 45, 25, 15, 10, 5 };
	unsigned n = (unsigned) throw(d, 100), k = 0;

	while (n >= percent[k])
		n -= percent[k++];
	return (enum kind)k;
}

static void make_even(struct plan *p, uint64_t size)
{
	p->kind = KIND_BULK;
	for (int i = 0; i < 2; i++)
		p->part[i] = (struct part){ .total = size,
					    .leave_at = NEVER,
					    .stall_at = NEVER,
					    .urgent_at = NEVER };
}

/**
 * plan_make() - the plan of connection @serial
 * @size:	bytes each way, or at most so many
 */
void plan_make(struct plan *p, enum sort sort, uint64_t size, uint64_t seed,
	       uint32_t serial)
{
	struct dice d = { (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) ^
			  (serial + 1) * UINT64_C(0xbf58476d1ce4e5b9) };

	*p = (struct plan){ .message = 1 };
	if (sort == SORT_EVEN) {
		make_even(p, size);
		return;
	}
	for (int i = 0; i < 8; i++)
		throw(&d, 2); /* away from where it began */
	p->kind = throw_kind(&d);
	for (int i = 0; i < 2; i++)
		make_part(&p->part[i], &d, size);
	if (p->kind == KIND_PINGPONG)
		make_pingpong(p, &d, sort == SORT_SHORT ? 3 : 60);
	if (p->kind == KIND_ANSWER && p->part[0].leave == LEAVE_CLOSE)
		p->part[0].leave = LEAVE_FIN; /* or nobody would answer */
	if (p->kind == KIND_SPEECH && p->part[1].leave == LEAVE_CLOSE)
		p->part[1].leave = LEAVE_FIN;
}

bool plan_is_orderly(const struct plan *p)
{
	return p->kind != KIND_SILENT && p->part[0].leave == LEAVE_FIN &&
	       p->part[1].leave == LEAVE_FIN;
}
