/* SPDX-License-Identifier: MIT */
/*
 * The quota of pipe pages (K12, K36), which root does not have: each test here
 * runs as an ordinary user of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "relay/conduit.h"
#include "unit/rig.h"

#define MIB (1 << 20)

/* More than any quota has room for. */
#define MANY 4096

static unsigned long soft_pages(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/sys/fs/pipe-user-pages-soft", "re");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return pages;
}

/*
 * From here on this process, which Check has forked for this test, is nobody
 * in particular. The quota is one user's: no other process may be the same.
 */
static void become_ordinary(void)
{
	uid_t uid = 1000000 + (uid_t)getpid();

	if (geteuid())
		return;
	ck_assert_int_eq(setgroups(0, NULL), 0);
	ck_assert_int_eq(setresgid(uid, uid, uid), 0);
	ck_assert_int_eq(setresuid(uid, uid, uid), 0);
	prctl(PR_SET_DUMPABLE, 1); /* or /proc/self/fd is not ours to read */
}

START_TEST(the_quota_is_known_and_does_not_bind_root)
{
	unsigned long pages = soft_pages(), each = MIB / (unsigned)getpagesize();

	if (!geteuid())
		ck_assert_uint_eq(pipes_quota(MIB), UINT_MAX);
	become_ordinary();
	if (!pages) {
		support_skip("no quota of pipe pages here");
		return;
	}
	ck_assert_uint_le(pipes_quota(MIB), pages / each);
	ck_assert_uint_ge(pipes_quota(MIB), pages / each / 2);
	ck_assert_uint_ge(pipes_quota(PIPE_SIZE_MIN), 8 * pipes_quota(MIB));
	ck_assert_uint_eq(pipes_quota(0), UINT_MAX);
}
END_TEST

/* FAULTS 14: what the kernel grants is read back. */
START_TEST(no_pipe_below_64_kib_is_ever_lent)
{
	static struct conduit *c[MANY];
	unsigned n = 0, smaller = 0;
	struct rig g;
	enum relay_fallback why;

	become_ordinary();
	if (!soft_pages()) {
		support_skip("no quota of pipe pages here");
		return;
	}
	rig_open_sized(&g, RELAY_SPLICE, 65536, MIB, MANY);
	while (!(why = pipe_take(&g.env.pipes, &c[n]))) {
		int size = fcntl(to_pipe(c[n])->in, F_GETPIPE_SZ);

		ck_assert_uint_eq(c[n]->size, size);
		ck_assert_int_ge(size, PIPE_SIZE_MIN);
		smaller += size < MIB;
		n++;
	}
	support_note("%u pipes, %u of them below 1 MiB", n, smaller);
	ck_assert_int_eq(why, FALLBACK_pipe_quota);
	ck_assert_uint_ge(n, pipes_quota(MIB));
	while (n--)
		c[n]->ops->give(c[n]);
	rig_close(&g);
}
END_TEST

#define WIRES 120
#define SAID  250000

/* Stalls at once: the sink takes little and nobody reads. */
static void lay_stalled(struct rig *g, struct wire *w, unsigned stream)
{
	wire_lay(g, w);
	peer_small_buffers(w->relay.side[1].watch.fd, 32768);
	say(w->peer[0], stream, 0, SAID);
}

static unsigned check_pipes(const struct wire *w, unsigned n)
{
	unsigned pipes = 0;

	for (unsigned i = 0; i < n; i++) {
		struct conduit *c = w[i].relay.lane[0].conduit;

		ck_assert_ptr_nonnull(c); /* it is stalled indeed */
		if (!c->ops->is_pipe)
			continue;
		ck_assert_int_ge(fcntl(to_pipe(c)->in, F_GETPIPE_SZ),
				 PIPE_SIZE_MIN);
		pipes++;
	}
	return pipes;
}

static void read_all(struct rig *g, struct wire *w, unsigned n)
{
	rig_spin(g);
	for (unsigned i = 0; i < n; i++)
		hear(w[i].peer[1], i, 0, SAID);
	for (unsigned i = 0; i < n; i++) {
		wire_hang_up(&w[i]);
		wire_wait(&w[i]);
	}
	rig_rest(g);
}

/* FAULTS 6: more stalled readers than the quota has pipes for. */
START_TEST(stalled_readers_share_a_quota_that_is_too_small_for_all)
{
	static struct wire w[WIRES];
	unsigned long reasons;
	struct rig g;
	unsigned pipes;

	become_ordinary();
	if (!soft_pages() || pipes_quota(MIB) >= WIRES) {
		support_skip("no quota that is small enough here");
		return;
	}
	rig_open_sized(&g, RELAY_SPLICE, 65536, MIB, _i ? MANY : 24);
	for (unsigned i = 0; i < WIRES; i++) {
		lay_stalled(&g, &w[i], i);
		rig_turns(&g, 3);
	}
	rig_settle(&g);
	pipes = check_pipes(w, WIRES);
	reasons = counter_read(&g.env.stats.fallbacks[_i ? FALLBACK_pipe_quota
							 : FALLBACK_pipe_share]);
	support_note("%d stalled readers hold %u pipes; %lu had none, %lu were "
		     "spilled",
		     WIRES, pipes, reasons,
		     (unsigned long)counter_read(&g.env.stats.spill.calls));
	ck_assert_uint_gt(pipes, 0);
	ck_assert_uint_le(pipes, _i ? soft_pages() * 4096 / PIPE_SIZE_MIN : 24);
	ck_assert_uint_ge(counter_read(&g.env.stats.spill.calls) + reasons,
			  WIRES - pipes);
	read_all(&g, w, WIRES);
	rig_close(&g);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("quota");
	TCase *tc = support_case(s, "quota");

	tcase_add_test(tc, the_quota_is_known_and_does_not_bind_root);
	tcase_add_test(tc, no_pipe_below_64_kib_is_ever_lent);
	tcase_add_loop_test(
		tc, stalled_readers_share_a_quota_that_is_too_small_for_all, 0,
		2);
	return support_main(s);
}
