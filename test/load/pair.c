/* SPDX-License-Identifier: MIT */
/*
 * pair.c - whether a connection went as it must
 *
 * What an end hears is held against what the other did, whatever that was:
 *
 *	bytes	are those that the other has said, from the first on (the
 *		stamps were checked as they came)
 *	FIN	behind all that the other had said when it said FIN or closed
 *	RST	only if the other has reset, or closed before it had heard all
 *
 * So a connection that neither has cut short has had every byte both ways.
 */
#include "load/pair.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const names[2] = { "client", "server" };
static const char *const heard_names[] = { "nothing", "FIN", "RST" };
static const char *const gone_names[] = { "is there", "left", "closed early",
					  "reset", "was reset" };

static bool has_said_end(const struct end *e)
{
	return e->said_fin || e->gone == GONE_EARLY;
}

static const char *judge_end(const struct end *e, const struct end *other)
{
	uint64_t said = other ? other->sent : 0;

	if (e->wrong)
		return e->wrong;
	if (e->got > said)
		return "it heard more than was said";
	if (e->heard == HEARD_FIN && !other)
		return "it heard FIN, though nobody was there";
	if (e->heard == HEARD_FIN && !has_said_end(other))
		return "it heard FIN, which nobody said";
	if (e->heard == HEARD_FIN && e->got != said)
		return "it heard FIN before all had come";
	if ((e->heard == HEARD_RST || e->failed) && other &&
	    other->gone != GONE_EARLY && other->gone != GONE_RESET)
		return "it heard RST, which nobody said";
	return NULL;
}

const char *pair_judge(const struct pair *p, char *why, size_t room)
{
	for (int i = 0; i < 2; i++) {
		const char *what =
			p->ends[i] ? judge_end(p->ends[i], p->ends[!i]) : NULL;

		if (what) {
			snprintf(why, room, "the %s: %s", names[i], what);
			return why;
		}
	}
	return NULL;
}

static int describe_end(const struct pair *p, int i, char *text, size_t room)
{
	const struct end *e = p->ends[i];
	const struct part *part = &p->plan.part[i];

	if (!e)
		return snprintf(text, room, "; %s: never came", names[i]);
	return snprintf(text, room,
			"; %s: %s; said %" PRIu64 " of %" PRIu64
			"%s, to end by %s at %" PRId64 "; heard %" PRIu64
			", then %s%s%s",
			names[i], gone_names[e->gone], e->sent, part->total,
			e->said_fin ? " and FIN" : "", leave_names[part->leave],
			(int64_t)part->leave_at, e->got, heard_names[e->heard],
			e->failed ? ", a write failed" : "",
			e->until_ms ? ", stalls" : "");
}

void pair_describe(const struct pair *p, char *text, size_t room)
{
	size_t n = (size_t)snprintf(text, room, "connection %u, %s", p->serial,
				    kind_names[p->plan.kind]);

	for (int i = 0; i < 2 && n < room; i++)
		n += (size_t)describe_end(p, i, text + n, room - n);
}
