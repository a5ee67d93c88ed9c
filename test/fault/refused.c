/* SPDX-License-Identifier: MIT */
/*
 * splice(2) that is refused, once or for ever, on the way in or on the way
 * out: all bytes arrive by buffer, and why is counted. FAULTS 5, 10.
 */
#include <errno.h>
#include <sys/socket.h>

#include "relay/conduit.h"

#include "fault/shim.h"
#include "support/pacer.h"
#include "unit/rig.h"

#define BULK 700000

static const int errnos[] = { EINVAL, ENOSYS, EPERM };

/* Every way to be refused, from _i. */
static struct refusal refusal_of(int i)
{
	return (struct refusal){
		.call = i & 1 ? FAULT_splice_out : FAULT_splice_in,
		.from = i & 2 ? 5 : 1,
		.times = i & 4 ? -1U / 2 : 1,
		.err = errnos[i / 8],
	};
}

#define REFUSALS (8 * (int)array_size(errnos))

static void carry(struct wire *w)
{
	struct pacer up[2], down[2];

	for (int i = 0; i < 2; i++) {
		up[i] = (struct pacer){ .fd = w->peer[i],
					.stream = (unsigned)i,
					.size = BULK,
					.end = 1 };
		down[i] = up[i];
		down[i].fd = w->peer[!i];
		down[i].pause_us = 100;
		pacer_start_recv(&down[i]);
		pacer_start_send(&up[i]);
	}
	for (int i = 0; i < 2; i++) {
		pacer_join(&up[i]);
		pacer_join(&down[i]);
	}
	wire_wait(w);
}

/* Only for the one reason, and once a lane that was refused. */
static void expect_counted(const struct relay_stats *t, enum relay_fallback why,
			   unsigned lanes)
{
	for (int i = 1; i < FALLBACKS; i++)
		ck_assert_uint_eq(counter_read(&t->fallbacks[i]),
				  i == (int)why ? lanes : 0);
}

START_TEST(what_splice_refuses_goes_by_buffer_and_is_counted)
{
	struct refusal refusal = refusal_of(_i);
	bool once = refusal.times == 1;
	unsigned lanes = 0;
	struct wire w, next;
	struct rig g;

	rig_open(&g, RELAY_SPLICE);
	wire_lay(&g, &w);
	fault.refusal = refusal;
	rig_spin(&g);
	carry(&w);
	rig_rest(&g);
	ck_assert(w.clean);
	for (int i = 0; i < 2; i++) {
		const struct lane *l = &w.relay.lane[i];

		ck_assert_uint_eq(l->delivered, BULK);
		lanes += l->no_pipe;
		/* a lane that was not refused goes on as before */
		if (!l->no_pipe)
			ck_assert_uint_eq(l->by_pipe, BULK);
		else if (refusal.from == 1 && !once)
			ck_assert_uint_eq(l->by_pipe, 0);
		else
			ck_assert_uint_lt(l->by_pipe, BULK);
	}
	ck_assert_uint_eq(lanes, once ? 1 : 2);
	expect_counted(&g.env.stats,
		       refusal.call == FAULT_splice_in ? FALLBACK_splice_in
						       : FALLBACK_splice_out,
		       lanes);
	/* and the next relay is asked anew, by pipe */
	fault.refusal.err = 0;
	wire_lay(&g, &next);
	rig_spin(&g);
	carry(&next);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(next.relay.lane[i].by_pipe, BULK);
	rig_close(&g);
}
END_TEST

/* A pipe that gives half of its bytes and not the rest leaves a hole: better
 * an end, for the relay that it belongs to. */
START_TEST(a_pipe_that_breaks_when_spilled_ends_its_relay_and_no_other)
{
	struct wire stalled, other;
	struct rig g;
	char buf[65536];
	uint64_t got = 0;
	ssize_t n;

	rig_open_sized(&g, RELAY_SPLICE, RIG_BUF_SIZE, RIG_PIPE_SIZE, 1);
	wire_lay(&g, &stalled);
	rig_stall(&g, &stalled, 0, 1);
	fault.refusal = (struct refusal){
		.call = FAULT_read, .err = EIO, .from = 2, .times = -1U / 2
	};
	rig_turns(&g, 500);
	wire_lay(&g, &other);
	rig_spin(&g);
	say(other.peer[0], 2, 0, 1000);
	hear(other.peer[1], 2, 0, 1000);
	while ((n = recv(stalled.peer[1], buf, sizeof(buf), 0)) > 0) {
		ck_assert_int_eq(stamp_check(buf, 1, got, (size_t)n), -1);
		got += (uint64_t)n;
	}
	ck_assert_int_lt(n, 0);
	ck_assert_uint_eq(fault.refusal.seen >= 2, 1);
	wire_wait(&stalled);
	say(other.peer[1], 3, 0, 1000);
	hear(other.peer[0], 3, 0, 1000);
	wire_hang_up(&other);
	wire_wait(&other);
	ck_assert(other.clean);
	rig_close(&g);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("refused");
	TCase *tc = support_case(s, "refused");

	tcase_add_loop_test(tc, what_splice_refuses_goes_by_buffer_and_is_counted,
			    0, REFUSALS);
	tcase_add_test(
		tc, a_pipe_that_breaks_when_spilled_ends_its_relay_and_no_other);
	return support_main(s);
}
