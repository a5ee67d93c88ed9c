/* SPDX-License-Identifier: MIT */
/*
 * peers.c - both ends of many connections, and the check of them
 *
 *	peers even|short|mixed COUNT AT_ONCE SIZE SEED [SECONDS]
 *
 * Says at which port its servers listen, and reads from its input, a line each,
 * where its clients are to connect to (127.0.0.1:PORT), up to an empty line. Then
 * it plays COUNT connections, AT_ONCE at a time, or as many as begin in SECONDS:
 *
 *	even	SIZE bytes each way; all begin when all are there
 *	short	up to SIZE bytes, and every kind of end
 *	mixed	the same with long ones, slow ones, ping-pong
 *
 * A line of JSON tells what it came to; exit status 1: not all went as it must,
 * and what did not is on stderr. Ends on its own, whatever happens.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "load/crowd.h"

#define MOST_WAYS 8

/* With a connection: the most that sluice takes is 30 s. But thousands at once
 * use up the kernel's memory for TCP; it drops what arrives then, and sends it
 * again after pauses that double, sluice or not. */
#define PATIENCE_MS	  60000
#define CROWD_PATIENCE_MS 200000
#define CROWD		  2000

static struct {
	uint64_t count, at_once, seconds;
	struct sockaddr_in to[MOST_WAYS];
	unsigned ways;
} want;

static struct crowd crowd;

static void read_arguments(int argc, char **argv)
{
	static const char *const sorts[] = { "even", "short", "mixed" };

	for (unsigned i = 0; argc >= 6 && i < 3; i++)
		if (!strcmp(argv[1], sorts[i])) {
			load.sort = (enum sort)i;
			want.count = strtoull(argv[2], NULL, 10);
			want.at_once = strtoull(argv[3], NULL, 10);
			load.size = strtoull(argv[4], NULL, 10);
			load.seed = strtoull(argv[5], NULL, 10);
			want.seconds = argc > 6 ? strtoull(argv[6], NULL, 10) : 0;
			return;
		}
	fprintf(stderr, "usage: %s even|short|mixed COUNT AT_ONCE SIZE SEED [SECONDS]\n",
		argv[0]);
	exit(2);
}

static void read_ways(void)
{
	char line[100];

	while (want.ways < MOST_WAYS && fgets(line, sizeof(line), stdin) &&
	       *line != '\n') {
		struct sockaddr_in *to = &want.to[want.ways++];
		char *colon = strchr(line, ':');

		to->sin_family = AF_INET;
		if (colon)
			*colon = '\0';
		if (!colon || inet_pton(AF_INET, line, &to->sin_addr) != 1) {
			fprintf(stderr, "%s: no address\n", line);
			exit(2);
		}
		to->sin_port = htons((uint16_t)atoi(colon + 1));
	}
}

static void raise_limit(void)
{
	struct rlimit most;

	getrlimit(RLIMIT_NOFILE, &most);
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

/* Whether another connection may begin. */
static bool may_begin(uint64_t end_ms)
{
	if (crowd.live >= want.at_once)
		return false;
	return end_ms ? load.now_ms < end_ms : crowd.serial < want.count;
}

static void begin_some(uint64_t end_ms)
{
	/* A few at a time: a burst is no test of anything but the backlog. */
	for (int n = 0; n < 64 && may_begin(end_ms); n++) {
		int err = crowd_connect(&crowd,
					&want.to[crowd.serial % want.ways]);

		if (err && err != -EADDRNOTAVAIL && err != -EBUSY) {
			fprintf(stderr, "connect: %s\n", strerror(-err));
			crowd.wrong++;
		}
		if (err)
			return;
	}
}

static void play(void)
{
	uint64_t end_ms = want.seconds ? load.now_ms + want.seconds * 1000 : 0;

	load.held = load.sort == SORT_EVEN;
	do {
		begin_some(end_ms);
		crowd_turn(&crowd);
		if (load.held && crowd.served == want.count)
			crowd_release(&crowd);
	} while (crowd.live || may_begin(end_ms));
	for (int n = 0; crowd.guests && n < 500; n++)
		crowd_turn(&crowd);
}

static void report(void)
{
	printf("{\"connections\":%u,\"served\":%u,\"unserved\":%" PRIu64
	       ",\"orderly\":%" PRIu64 ",\"strangers\":%" PRIu64
	       ",\"late\":%" PRIu64 ",\"said\":%" PRIu64 ",\"heard\":%" PRIu64
	       ",\"fins\":%" PRIu64 ",\"resets\":%" PRIu64
	       ",\"urgent_said\":%" PRIu64 ",\"urgent_seen\":%" PRIu64
	       ",\"urgent_missed\":%" PRIu64 ",\"wrong\":%u",
	       crowd.serial, crowd.served, crowd.unserved, crowd.orderly,
	       crowd.strangers, crowd.late, crowd.said, crowd.heard,
	       crowd.fins_heard, crowd.resets_heard, load.urgent_sent,
	       load.urgent_seen, load.urgent_missed, crowd.wrong);
	for (int k = 0; k < KINDS; k++)
		printf(",\"%s\":%" PRIu64, kind_names[k], crowd.count[k]);
	printf("}\n");
}

int main(int argc, char **argv)
{
	int err;

	read_arguments(argc, argv);
	signal(SIGPIPE, SIG_IGN);
	raise_limit();
	err = crowd_open(&crowd, want.at_once < CROWD ? PATIENCE_MS
						      : CROWD_PATIENCE_MS);
	if (err) {
		fprintf(stderr, "cannot listen: %s\n", strerror(-err));
		return 1;
	}
	printf("listening 127.0.0.1:%u\n", crowd_port(&crowd));
	fflush(stdout);
	read_ways();
	if (!want.ways)
		return 2;
	alarm((unsigned)want.seconds + 300);
	play();
	report();
	return crowd.wrong ? 1 : 0;
}
