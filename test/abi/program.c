/* SPDX-License-Identifier: MIT */
/*
 * A program as others write it: three bytes through a relay of UNIX domain
 * sockets. install.py builds it against what is installed, and against headers
 * whose structs are shorter (as an older program's) or longer (NEWER).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sluice.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAIL(why) (fprintf(stderr, "%s\n", why), 1)

/* What lies behind a struct is not the library's. */
struct guarded {
	struct sluice_result result;
	unsigned char after[64];
};

static int guard_is_whole(const struct guarded *g)
{
	for (size_t i = 0; i < sizeof(g->after); i++)
		if (g->after[i] != 0xa5)
			return 0;
	return 1;
}

/* Return: 1 as sluice_pop(), or less. */
static int wait_for_result(struct sluice *s, struct sluice_result *result)
{
	struct pollfd p;
	int got;

	p.fd = sluice_fd(s);
	p.events = POLLIN;
	while (!(got = sluice_pop(s, result)))
		if (poll(&p, 1, 20000) != 1 || sluice_dispatch(s, 0))
			return -ETIME;
	return got;
}

/* Return: 0, or 1 with a line on stderr. */
static int relay_three_bytes(struct sluice *s,
			     const struct sluice_relay_options *options)
{
	const struct sluice_result init = SLUICE_RESULT_INIT;
	struct guarded g;
	int a[2], b[2];
	char text[3];

	memset(&g, 0xa5, sizeof(g));
	g.result.size = init.size;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, a) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, b) || write(a[0], "abc", 3) != 3 ||
	    shutdown(a[0], SHUT_WR) || shutdown(b[0], SHUT_WR))
		return FAIL("cannot make sockets");
	if (sluice_relay(s, a[1], b[1], options, NULL))
		return FAIL("sluice_relay() failed");
	if (wait_for_result(s, &g.result) != 1)
		return FAIL("no result");
	if (read(b[0], text, 3) != 3 || memcmp(text, "abc", 3))
		return FAIL("not the bytes that were sent");
	close(a[0]);
	close(b[0]);
	if (g.result.size != init.size || g.result.why != SLUICE_WHY_ENDED ||
	    g.result.end[0] != SLUICE_END_FIN ||
	    g.result.end[1] != SLUICE_END_FIN || g.result.delivered[0] != 3 ||
	    g.result.userdata != options->userdata)
		return FAIL("not the result");
#ifdef NEWER
	if (g.result.newer[0] || g.result.newer[3])
		return FAIL("what the library does not know is not 0");
#endif
	return guard_is_whole(&g) ? 0 : FAIL("it wrote behind the result");
}

#ifdef NEWER
/* What the library does not know is refused, and not ignored. */
static int refuses_what_is_new(struct sluice *s)
{
	struct sluice_relay_options relay_options = SLUICE_RELAY_OPTIONS_INIT;
	struct sluice_options options = SLUICE_OPTIONS_INIT;
	struct sluice *other;

	options.newer[3] = relay_options.newer[3] = 1;
	return sluice_new(&other, &options) == -E2BIG &&
	       sluice_relay(s, 0, 1, &relay_options, NULL) == -E2BIG;
}
#endif

int main(void)
{
	struct sluice_relay_options relay_options = SLUICE_RELAY_OPTIONS_INIT;
	struct sluice_options options = SLUICE_OPTIONS_INIT;
	struct sluice *s;
	int bad;

	signal(SIGPIPE, SIG_IGN);
	options.mode = SLUICE_MODE_COPY;
	relay_options.userdata = &options;
	if (sluice_new(&s, &options))
		return FAIL("sluice_new() failed");
	bad = relay_three_bytes(s, &relay_options);
#ifdef NEWER
	if (!bad && !refuses_what_is_new(s))
		bad = FAIL("an option that it does not know is ignored");
#endif
	sluice_free(s);
	/* install.py checks that the header was the one that it made. */
	if (!bad)
		printf("%zu %zu %zu\n", sizeof(options), sizeof(relay_options),
		       sizeof(struct sluice_result));
	return bad;
}
