/* SPDX-License-Identifier: MIT */
/*
 * A scenario, played.
 */
#include "fault/play.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fault/shim.h"
#include "support/peer.h"
#include "support/stamp.h"
#include "support/suite.h"

/* Without anything moving for so long, it hangs. */
#define HANG_MS 2000

/* One peer on the stage; who[i] says stream i and hears stream !i. */
struct who {
	const struct part *part;
	int fd;
	unsigned stream;
	size_t said, heard;
	bool told; /* has sent its FIN */
	bool cut;  /* a send has met the RST, and eaten it (K20) */
	enum play_end end;
};

struct stage {
	struct who who[2];
	int side[2]; /* the library's, once it has taken them */
	struct sluice *sluice;
	struct ending *e;
};

static struct stage *on_stage;

/* fault.reset: a peer that is no longer there has nothing to say to it. */
static void reset_peer_of(int fd)
{
	for (int i = 0; i < 2; i++) {
		struct who *w = &on_stage->who[i];

		if (on_stage->side[i] != fd || w->fd < 0)
			continue;
		peer_reset(w->fd);
		w->fd = -1;
	}
}

static void set_room(int fd, int room)
{
	if (room)
		ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room,
					    sizeof(room)),
				 0);
}

static void stage_open(struct stage *s, const struct play *play, struct ending *e)
{
	*e = (struct ending){ .result = SLUICE_RESULT_INIT };
	*s = (struct stage){ .e = e };
	on_stage = s;
	fault.reset = reset_peer_of;
	for (unsigned i = 0; i < 2; i++) {
		int fd[2], one = 1;

		tcp_pair(fd);
		peer_nodelay(fd[0]);
		peer_nodelay(fd[1]);
		set_room(fd[1], play->room);
		ck_assert_int_eq(setsockopt(fd[0], SOL_SOCKET, SO_OOBINLINE,
					    &one, sizeof(one)),
				 0);
		s->side[i] = fd[1];
		s->who[i] = (struct who){ .part = &play->part[i],
					  .fd = fd[0],
					  .stream = i };
	}
}

/* Something is not as it must be; the first is told. */
static void wrong(struct stage *s, const char *what)
{
	if (!s->e->wrong)
		s->e->wrong = what;
}

/* Says what it can. Return: whether that was anything. */
static bool who_says(struct who *w)
{
	size_t stop = w->part->shout && w->said < w->part->shout
			      ? w->part->shout - 1
			      : w->part->says;
	bool shouts = w->part->shout && w->said == w->part->shout - 1;
	char buf[16384];
	ssize_t n;

	if (w->fd < 0 || w->cut || w->said == w->part->says ||
	    (w->part->answers && w->end != PLAY_EOF))
		return false;
	n = (ssize_t)(shouts ? 1 : stop - w->said);
	if (n > (ssize_t)sizeof(buf))
		n = sizeof(buf);
	stamp_fill(buf, w->stream, w->said, (size_t)n);
	n = send(w->fd, buf, (size_t)n,
		 MSG_DONTWAIT | MSG_NOSIGNAL | (shouts ? MSG_OOB : 0));
	if (n < 0 && errno != EAGAIN)
		w->cut = true;
	w->said += n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* Ends what it says, when it has said it. Return: whether it did. */
static bool who_ends(struct who *w)
{
	if (w->fd < 0 || w->told || w->said < w->part->says)
		return false;
	if (w->part->fin) {
		shutdown(w->fd, SHUT_WR);
		w->told = true;
		return true;
	}
	/* its own RST would throw away what has not arrived yet */
	if (!w->part->resets || peer_unacked(w->fd))
		return false;
	peer_reset(w->fd);
	w->fd = -1;
	return true;
}

/* The mark is where the urgent byte is, and nowhere else. */
static void look_at_mark(struct stage *s, const struct who *w,
			 const struct part *from)
{
	bool here = from->shout && w->heard == from->shout - 1;
	int at = 0;

	if (w->heard == from->says)
		return;
	ck_assert_int_eq(ioctl(w->fd, SIOCATMARK, &at), 0);
	if (at && !here)
		wrong(s, "an urgent byte where none was said");
	/* if the mark itself cannot be seen, it goes on as an ordinary one */
	if (!at && here &&
	    !(fault.hit_errno &&
	      (fault.hit == FAULT_ioctl || fault.hit == FAULT_poll)))
		wrong(s, "the urgent byte is urgent no more");
}

/* Hears at most @most. Return: whether there was anything, an end included. */
static bool who_hears(struct stage *s, struct who *w, size_t most)
{
	const struct part *from = s->who[!w->stream].part;
	char buf[65536];
	ssize_t n;

	if (w->fd < 0 || w->end)
		return false;
	if (most > sizeof(buf))
		most = sizeof(buf);
	n = recv(w->fd, buf, most, MSG_DONTWAIT | MSG_PEEK);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n > 0) {
		look_at_mark(s, w, from);
		n = recv(w->fd, buf, most, MSG_DONTWAIT);
	}
	if (n <= 0) {
		w->end = n < 0 || w->cut ? PLAY_RESET : PLAY_EOF;
		return true;
	}
	if (stamp_check(buf, !w->stream, w->heard, (size_t)n) >= 0)
		wrong(s, "a wrong byte");
	w->heard += (size_t)n;
	return true;
}

/* Calls into the library, with calls failing. */
static int call_new(struct stage *s, int mode)
{
	struct sluice_options o = SLUICE_OPTIONS_INIT;
	struct sluice *sluice = NULL;
	int err;

	o.mode = mode;
	o.pipe_size = o.buffer_size = 65536;
	o.pipe_limit = 4;
	fault.live = true;
	err = sluice_new(&sluice, &o);
	fault.live = false;
	if (err && sluice)
		wrong(s, "sluice_new() failed, and set a pointer");
	s->sluice = sluice;
	return err;
}

static int call_relay(struct stage *s)
{
	int err;

	fault.live = true;
	err = sluice_relay(s->sluice, s->side[0], s->side[1], NULL, NULL);
	fault.live = false;
	return err;
}

/* What fails changes nothing, so it can be tried again. */
static void begin(struct stage *s, int mode)
{
	int err = call_new(s, mode);

	if (err) {
		s->e->denied = err;
		err = call_new(s, mode);
	}
	ck_assert_int_eq(err, 0);
	err = call_relay(s);
	if (err) {
		s->e->denied = err;
		err = call_relay(s);
	}
	ck_assert_int_eq(err, 0);
}

static void dispatch(struct stage *s, int timeout_ms)
{
	struct ending *e = s->e;

	fault.live = true;
	(void)sluice_dispatch(s->sluice, timeout_ms);
	if (sluice_pop(s->sluice, &e->result) > 0) {
		if (e->over)
			wrong(s, "over twice");
		e->over = true;
	}
	fault.live = false;
}

static bool all_ended(const struct stage *s)
{
	for (int i = 0; i < 2; i++)
		if (s->who[i].fd >= 0 && !s->who[i].end)
			return false;
	return s->e->over;
}

static void perform(struct stage *s)
{
	int64_t moved = now_ms();
	int turns = 0;

	while (!all_ended(s)) {
		bool moves = false;

		for (int i = 0; i < 2; i++) {
			struct who *w = &s->who[i];

			/* once all is said and done, there is no hurry */
			moves |= who_hears(s, w,
					   s->e->over ? 65536 : w->part->gulp);
			for (int n = 0; n < 4 && who_says(w); n++)
				moves = true;
			moves |= who_ends(w);
		}
		if (!s->e->over)
			dispatch(s, moves ? 0 : 5);
		else if (!moves)
			sleep_us(200);
		if (moves)
			moved = now_ms();
		if (now_ms() - moved > HANG_MS || ++turns > 100000) {
			wrong(s, "it hangs");
			break;
		}
	}
}

void play_run(const struct play *play, int mode, struct ending *e)
{
	int fds = open_fds();
	struct stage s;

	fault.blocks = 0;
	fault.stalls = 0;
	stage_open(&s, play, e);
	begin(&s, mode);
	perform(&s);

	fault.live = true;
	sluice_free(s.sluice);
	fault.live = false;
	for (int i = 0; i < 2; i++) {
		e->got[i] = s.who[i].heard;
		e->end[i] = s.who[i].end;
		e->lives[i] = s.who[i].fd >= 0;
		if (e->lives[i])
			close(s.who[i].fd);
	}
	if (open_fds() != fds)
		wrong(&s, "a descriptor is left over");
	if (fault.blocks)
		wrong(&s, "memory is left over");
	if (fault.stalls)
		wrong(&s, "splice(2) is asked for what makes it wait");
}

/* Whether peer @i has to hear all that the other says, and whether it has. */
static bool owed(const struct play *play, int i)
{
	return !play->part[i].resets;
}

static bool has_all(const struct play *play, const struct ending *e, int i)
{
	return e->got[i] == play->part[!i].says;
}

static const char *what_is_missing(const struct play *play,
				   const struct ending *e)
{
	const struct sluice_result *r = &e->result;

	if (!e->over || r->why != SLUICE_WHY_ENDED)
		return "no result as it should be";
	for (int i = 0; i < 2; i++) {
		const struct part *other = &play->part[!i];

		if (r->end[i] != (play->part[i].resets ? SLUICE_END_RESET
				  : play->part[i].fin  ? SLUICE_END_FIN
						       : SLUICE_END_OPEN))
			return "another end is reported";
		if (!owed(play, i))
			continue;
		if (!has_all(play, e, i))
			return "bytes are missing";
		if (e->end[i] != (other->resets ? PLAY_RESET : PLAY_EOF))
			return "another end is seen";
		if (r->read[!i] < other->says || r->delivered[!i] != other->says)
			return "other bytes are counted";
	}
	return NULL;
}

bool play_is_whole(const struct play *play, const struct ending *e,
		   const char **why)
{
	*why = what_is_missing(play, e);
	return !*why;
}

/* "All went well": then all was said, and all of it was taken by the other's
 * kernel; that peer may have reset since, without having read it. */
static const char *what_did_not_go_well(const struct play *play,
					const struct ending *e)
{
	const struct sluice_result *r = &e->result;

	for (int i = 0; i < 2; i++) {
		if (!play->part[!i].fin || r->read[!i] != play->part[!i].says ||
		    r->delivered[!i] != r->read[!i])
			return "cut short, and reported as a success";
		if (e->lives[i] && (!has_all(play, e, i) || e->end[i] != PLAY_EOF))
			return "reported as a success, and not seen as one";
	}
	return NULL;
}

static const char *what_is_a_lie(const struct play *play, const struct ending *e)
{
	const struct sluice_result *r = &e->result;

	if (!e->over)
		return "no result";
	if (r->end[0] == SLUICE_END_FIN && r->end[1] == SLUICE_END_FIN)
		return what_did_not_go_well(play, e);
	for (int i = 0; i < 2; i++) {
		bool truth = has_all(play, e, i) && play->part[!i].fin;

		if (e->end[i] == PLAY_EOF && !truth)
			return "cut short, with a clean EOF";
		if (e->end[i] == PLAY_NONE && e->lives[i])
			return "cut short, and not told";
		if (r->delivered[!i] < e->got[i] || r->read[!i] < e->got[i])
			return "more was heard than is counted";
	}
	return NULL;
}

bool play_is_honest(const struct play *play, const struct ending *e,
		    const char **why)
{
	*why = what_is_a_lie(play, e);
	return !*why;
}
