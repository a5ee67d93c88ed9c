/* SPDX-License-Identifier: MIT */
/*
 * pipes.c - pipes of one thread, for the splicing conduit
 *
 * DOC: Theory of operation
 *
 * A lane borrows a pipe when it is about to read and gives it back when the
 * last byte has left, all within one turn unless its sink refuses bytes. So a
 * pipe that is lent while another lane asks for one belongs to a lane that
 * waits for its sink, and a few pipes serve any number of connections. Big ones
 * are what makes splicing cheap, and a user who is not root may have 64 MiB of
 * them (K12, K36): each thread has a share of that quota and never makes more.
 *
 * When the share is lent out, the pipe that has waited longest for its sink is
 * spilled into a buffer and changes hands; if none has waited for long, the
 * lane that asked uses a buffer this time. Either way the bytes are copied as
 * often as in copy mode, no more.
 *
 * A pipe that still holds bytes is closed, never lent again: the next borrower
 * would send them.
 */
#include "relay/pipes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/probe.h"
#include "base/util.h"

/* Turns without progress after which a lane counts as stalled: a sink that
 * reads has answered by then, and one that does not has lost nothing. */
#define STALLED_TURNS 64

/* How many borrowings go by before a kernel that refused is asked again. */
#define HOLDOFF 256

/* Capabilities that lift the quota, by their numbers in capability(7). */
#define CAP_SYS_ADMIN	 21
#define CAP_SYS_RESOURCE 24

static void pipe_free(struct pipe *p)
{
	p->home->n--;
	counter_sub(&p->home->stats->pipes_now, 1);
	list_remove(&p->node);
	close_fd(p->in);
	close_fd(p->out);
	free(p);
}

static void pipe_drop(struct list *node)
{
	pipe_free(container_of(node, struct pipe, node));
}

/**
 * pipes_init() - make a store, with nothing in it
 * @size:	bytes wished for a pipe; less is taken if the kernel says so
 * @limit:	how many at most, free or lent
 * @bufs:	where what stalled pipes hold may be spilled
 * @loop:	the thread's
 */
void pipes_init(struct pipes *ps, size_t size, unsigned limit,
		struct bufs *bufs, struct relay_stats *stats, struct loop *loop)
{
	*ps = (struct pipes){
		.size = size,
		.limit = limit,
		.bufs = bufs,
		.stats = stats,
		.loop = loop,
	};
	freelist_init(&ps->freelist, loop, pipe_drop);
	list_init(&ps->stalled);
}

/* Closes the free ones. Return: how many. */
unsigned pipes_close_free(struct pipes *ps)
{
	return freelist_drop_all(&ps->freelist);
}

/* All that were taken must have been given back. */
void pipes_fini(struct pipes *ps)
{
	freelist_fini(&ps->freelist);
}

/*
 * Grows a pipe towards @want. Past the user's quota, growing says EPERM, and
 * a new pipe has two slots instead of sixteen (K12).
 *
 * Return: what it has, or a negative errno.
 */
static int grow(int fd, size_t want)
{
	int got;

	for (; want >= PIPE_SIZE_MIN; want /= 2) {
		got = fcntl(fd, F_SETPIPE_SZ, (int)want);
		if (got >= 0)
			return got;
	}
	got = fcntl(fd, F_GETPIPE_SZ);
	return got < 0 ? -errno : got;
}

/* Opens one as large as it may be. Return: FALLBACK_none, or why there is none. */
static enum relay_fallback open_pipe(size_t want, int fd[2], size_t *size)
{
	int got;

	if (pipe2(fd, O_NONBLOCK | O_CLOEXEC) < 0) {
		switch (errno) {
		case EMFILE:
			return FALLBACK_pipe_descriptors;
		case ENFILE: /* pipe-user-pages-hard says this too */
			return FALLBACK_pipe_quota;
		default:
			return FALLBACK_pipe_refused;
		}
	}
	got = grow(fd[1], want);
	if (got < PIPE_SIZE_MIN) {
		close_fd(fd[0]);
		close_fd(fd[1]);
		return FALLBACK_pipe_quota;
	}
	*size = (size_t)got;
	return FALLBACK_none;
}

static enum relay_fallback pipe_new(struct pipes *ps, struct pipe **ret)
{
	struct pipe *p;
	size_t size;
	int fd[2];
	enum relay_fallback why = open_pipe(ps->size, fd, &size);

	if (why)
		return why;
	p = calloc(1, sizeof(*p));
	if (!p) {
		close_fd(fd[0]);
		close_fd(fd[1]);
		return FALLBACK_pipe_refused;
	}
	p->conduit.ops = &pipe_ops;
	p->conduit.size = size;
	p->conduit.stats = ps->stats;
	p->home = ps;
	p->out = fd[0];
	p->in = fd[1];
	list_init(&p->node);
	ps->n++;
	counter_add(&ps->stats->pipes_made, 1);
	counter_add(&ps->stats->pipes_now, 1);
	*ret = p;
	return FALLBACK_none;
}

static struct pipe *free_pipe(struct pipes *ps)
{
	struct list *node = freelist_take(&ps->freelist);

	return node ? container_of(node, struct pipe, node) : NULL;
}

/* Takes the pipe whose sink has refused bytes for longest, NULL if none. */
static struct pipe *stalled_pipe(struct pipes *ps)
{
	struct pipe *p;
	int err;

	if (list_empty(&ps->stalled))
		return NULL;
	p = container_of(ps->stalled.next, struct pipe, node);
	if (ps->loop->turns - p->since <= STALLED_TURNS)
		return NULL;
	err = pipe_spill(p, ps->bufs);
	if (err == -EIO) /* nobody can have it; the next may do */
		list_remove(&p->node);
	return err ? NULL : free_pipe(ps);
}

static void lend(struct pipes *ps, struct pipe *p, struct conduit **holder)
{
	struct relay_stats *t = ps->stats;

	p->holder = holder;
	*holder = &p->conduit;
	probe(borrow, p, true, p->conduit.size);
	counter_add(&t->pipes_lent, 1);
	counter_add(&t->pipes_out, 1);
	counter_max(&t->pipes_out_max, counter_read(&t->pipes_out));
}

/* A new one if the share and the kernel allow. Return: as pipe_take(). */
static enum relay_fallback try_new(struct pipes *ps, struct pipe **ret)
{
	enum relay_fallback why;

	if (ps->n >= ps->limit)
		return FALLBACK_pipe_share;
	if (ps->holdoff) {
		ps->holdoff--;
		return ps->refused;
	}
	why = pipe_new(ps, ret);
	if (why) {
		ps->holdoff = HOLDOFF;
		ps->refused = why;
	}
	return why;
}

/**
 * pipe_take() - borrow an empty pipe
 * @holder:	set to it on success; must stay put until it is given back, and
 *		may be changed to a buffer with the same bytes by a later
 *		pipe_take() of another lane
 *
 * Return: FALLBACK_none, or why there is none.
 */
enum relay_fallback pipe_take(struct pipes *ps, struct conduit **holder)
{
	struct pipe *p = free_pipe(ps);
	enum relay_fallback why = FALLBACK_none;

	if (!p)
		why = try_new(ps, &p);
	if (why)
		p = stalled_pipe(ps);
	if (!p)
		return why;
	lend(ps, p, holder);
	return FALLBACK_none;
}

/* Ends a borrowing; *holder is the borrower's to clear. */
void pipe_give(struct pipe *p)
{
	struct pipes *ps = p->home;

	probe(give, p, true, p->conduit.held);
	counter_sub(&ps->stats->pipes_out, 1);
	list_remove(&p->node);
	if (p->conduit.held) {
		pipe_free(p);
		return;
	}
	freelist_give(&ps->freelist, &p->node);
}

/* Notes that its sink refuses bytes: from now on it may be spilled. */
void pipe_stalls(struct pipe *p)
{
	p->since = p->home->loop->turns;
	list_remove(&p->node);
	list_append(&p->home->stalled, &p->node);
}

/**
 * pipes_probe() - make the first pipe now, to see what the kernel grants
 *
 * Return: its size in bytes, or 0 if none is to be had just now.
 */
size_t pipes_probe(struct pipes *ps)
{
	struct pipe *p;

	if (pipe_new(ps, &p))
		return 0;
	freelist_give(&ps->freelist, &p->node);
	return p->conduit.size;
}

static unsigned long read_number(const char *path)
{
	char text[32] = "";
	FILE *f = fopen(path, "re");

	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	return strtoul(text, NULL, 10);
}

/* Whether this process is above the pipe quota. */
static bool is_privileged(void)
{
	char line[128];
	unsigned long long caps = 0;
	FILE *f = fopen("/proc/self/status", "re");

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "CapEff:", 7))
			caps = strtoull(line + 7, NULL, 16);
	fclose(f);
	return caps & (1ULL << CAP_SYS_ADMIN | 1ULL << CAP_SYS_RESOURCE);
}

/**
 * pipes_quota() - how many pipes of a size the user may have in all
 * @size:	bytes a pipe
 *
 * An eighth of the quota is left to the user's other programs.
 *
 * Return: how many, or UINT_MAX if there is no limit.
 */
unsigned pipes_quota(size_t size)
{
	unsigned long pages = read_number("/proc/sys/fs/pipe-user-pages-soft");
	unsigned long hard = read_number("/proc/sys/fs/pipe-user-pages-hard");
	unsigned long each = size / (unsigned long)sysconf(_SC_PAGESIZE);

	if (hard && (!pages || hard < pages))
		pages = hard;
	if (!pages || !each || is_privileged())
		return (unsigned)-1;
	return (unsigned)(pages * 7 / 8 / each);
}
