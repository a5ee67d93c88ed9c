/* SPDX-License-Identifier: MIT */
/*
 * args.c - the command line
 *
 * Every option is read by one function, whatever the subcommand, and each
 * subcommand has the list of those that it knows.
 */
#include "args.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_MAX	86400
#define CONNECTIONS_MAX 20000
#define SIZE_MAX_RR	(1 << 20)
#define PIPELINE_MAX	1024
#define GRACE_S		30  /* default timeout, on top of --seconds */
#define PATIENCE_S	120 /* default timeout without --seconds */
#define SERVE_S		600 /* default timeout of the server */

static const char help[] =
	"sluice-load - traffic for a TCP forwarder, and the check of it\n"
	"\n"
	"  sluice-load serve LISTEN [--sink|--echo|--source BYTES] [--check]\n"
	"      The other end of all that follows. Each client says what it\n"
	"      wants; with --sink, --echo or --source all get that, unasked.\n"
	"  sluice-load bulk TARGET --seconds S|--bytes N [-P STREAMS]\n"
	"                   [--reverse] [--check]\n"
	"      As many bytes as possible, or N of all streams together; from\n"
	"      the server with --reverse, and each verified with --check.\n"
	"  sluice-load rr TARGET --seconds S [-N CONNECTIONS] [--size BYTES]\n"
	"                 [--pipeline DEPTH]\n"
	"      Request and answer, in turn, on connections that stay. With\n"
	"      --pipeline not one request but DEPTH, 1 to 1024, are under way\n"
	"      on each, and are answered in their order.\n"
	"  sluice-load crr TARGET --seconds S|--count N [-K PARALLEL]\n"
	"                  [--size BYTES]\n"
	"      Connect, request, answer, close.\n"
	"  sluice-load hold TARGET [-N CONNECTIONS] [--size BYTES] [--unread]\n"
	"      Request and answer once, say so, and leave the connections "
	"idle\n"
	"      until the end of stdin; then reset them. With --unread it asks\n"
	"      for so many bytes on each, and reads none.\n"
	"\n"
	"  --timeout S   give up after S seconds, whatever happens; unless\n"
	"                given 30 more than --seconds, 120 without those,\n"
	"                and 600 for serve\n"
	"\n"
	"LISTEN and TARGET are 127.0.0.1:9000 or [::1]:9000; on port 0 serve\n"
	"takes a free one and says which. BYTES and N may end in K, M or G.\n"
	"The results are a line of JSON on stdout. Exit status: 0 all right,\n"
	"1 an error or a wrong byte, 2 a wrong command line.\n";

enum {
	O_SINK = 256,
	O_ECHO,
	O_SOURCE,
	O_CHECK,
	O_SECONDS,
	O_BYTES,
	O_COUNT,
	O_SIZE,
	O_PIPELINE,
	O_REVERSE,
	O_TIMEOUT,
	O_UNREAD,
};

static const struct option long_options[] = {
	{ "sink", no_argument, NULL, O_SINK },
	{ "echo", no_argument, NULL, O_ECHO },
	{ "source", required_argument, NULL, O_SOURCE },
	{ "check", no_argument, NULL, O_CHECK },
	{ "seconds", required_argument, NULL, O_SECONDS },
	{ "bytes", required_argument, NULL, O_BYTES },
	{ "count", required_argument, NULL, O_COUNT },
	{ "size", required_argument, NULL, O_SIZE },
	{ "pipeline", required_argument, NULL, O_PIPELINE },
	{ "reverse", no_argument, NULL, O_REVERSE },
	{ "timeout", required_argument, NULL, O_TIMEOUT },
	{ "unread", no_argument, NULL, O_UNREAD },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const struct {
	const char *name;
	int knows[8];
} commands[COMMANDS] = {
	[SERVE] = { "serve", { O_SINK, O_ECHO, O_SOURCE, O_CHECK, O_TIMEOUT } },
	[BULK] = { "bulk",
		   { 'P', O_SECONDS, O_BYTES, O_REVERSE, O_CHECK, O_TIMEOUT } },
	[RR] = { "rr", { 'N', O_SIZE, O_PIPELINE, O_SECONDS, O_TIMEOUT } },
	[CRR] = { "crr", { 'K', O_SIZE, O_SECONDS, O_COUNT, O_TIMEOUT } },
	[HOLD] = { "hold", { 'N', O_SIZE, O_UNREAD, O_TIMEOUT } },
};

void args_help(void)
{
	fputs(help, stdout);
}

static int bad(const char *what, const char *value, const char *right)
{
	complain("%s%s%s: %s", what, value ? " " : "", value ? value : "", right);
	return -1;
}

/* A whole number with K, M or G behind it, or an error that names the option. */
static int read_size(uint64_t *to, const char *name, uint64_t max)
{
	static const char units[] = "KMG";
	char text[96], *end;
	const char *unit;
	uint64_t n;

	errno = 0;
	n = strtoull(optarg, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (unit && n <= UINT64_MAX >> 10 * (unit - units + 1)) {
		n <<= 10 * (unit - units + 1);
		end++;
	}
	if (optarg[0] >= '0' && optarg[0] <= '9' && !*end && !errno && n &&
	    n <= max) {
		*to = n;
		return 0;
	}
	snprintf(text, sizeof(text),
		 "should be a number from 1 to %llu, such as %s",
		 (unsigned long long)max,
		 max < 1u << 31 ? "32 or 1K" : "32, 64K or 2G");
	return bad(name, optarg, text);
}

static int read_seconds(uint64_t *to_ns, const char *name)
{
	char *end;
	double s = strtod(optarg, &end);

	if (end != optarg && !*end && s >= 0.01 && s <= SECONDS_MAX) {
		*to_ns = s * 1e9;
		return 0;
	}
	return bad(name, optarg,
		   "should be seconds, from 0.01 to 86400, such as 2 or 0.5");
}

static int read_connections(struct options *o, int opt)
{
	const char name[] = { '-', opt, 0 };
	uint64_t n;

	if (read_size(&n, name, CONNECTIONS_MAX) < 0)
		return -1;
	o->connections = n;
	return 0;
}

static int read_rr_size(struct options *o)
{
	uint64_t n;

	if (read_size(&n, "--size", SIZE_MAX_RR) < 0)
		return -1;
	o->size = n;
	return 0;
}

static int read_pipeline(struct options *o)
{
	uint64_t n;

	if (read_size(&n, "--pipeline", PIPELINE_MAX) < 0)
		return -1;
	o->pipeline = n;
	return 0;
}

static int read_raw(struct options *o, enum hello_kind kind)
{
	if (o->raw)
		return bad("serve", NULL,
			   "one of --sink, --echo and --source, or none");
	o->raw = kind;
	return kind == HELLO_SOURCE ? read_size(&o->bytes, "--source", INT64_MAX)
				    : 0;
}

static int read_option(struct options *o, int opt)
{
	switch (opt) {
	case O_SINK:
		return read_raw(o, HELLO_SINK);
	case O_ECHO:
		return read_raw(o, HELLO_ECHO);
	case O_SOURCE:
		return read_raw(o, HELLO_SOURCE);
	case O_CHECK:
		o->check = true;
		return 0;
	case O_UNREAD:
		o->unread = true;
		return 0;
	case O_REVERSE:
		o->reverse = true;
		return 0;
	case O_SECONDS:
		return read_seconds(&o->time_ns, "--seconds");
	case O_TIMEOUT:
		return read_seconds(&o->timeout_ns, "--timeout");
	case O_BYTES:
		return read_size(&o->bytes, "--bytes", INT64_MAX);
	case O_COUNT:
		return read_size(&o->count, "--count", INT64_MAX);
	case O_SIZE:
		return read_rr_size(o);
	case O_PIPELINE:
		return read_pipeline(o);
	default:
		return read_connections(o, opt);
	}
}

/* Judges what getopt found. @last is the last argument that it looked at. */
static int check_option(enum command command, int opt, const char *last)
{
	const struct option *l = long_options;
	const int *knows = commands[command].knows;

	if (opt == ':')
		return bad(last, NULL, "needs a value");
	if (opt == '?')
		return bad(last, NULL,
			   optopt >= O_SINK ? "should have no value"
					    : "is no option; see --help");
	while (*knows && *knows != opt)
		knows++;
	if (*knows)
		return 0;
	while (l->name && l->val != opt)
		l++;
	if (l->name)
		complain("--%s: is no option of %s; see --help", l->name,
			 commands[command].name);
	else
		complain("-%c: is no option of %s; see --help", opt,
			 commands[command].name);
	return -1;
}

static int read_command(enum command *command, const char *name)
{
	unsigned i;

	if (name && (!strcmp(name, "--help") || !strcmp(name, "-h"))) {
		*command = HELP;
		return 0;
	}
	for (i = 0; name && i < COMMANDS; i++) {
		if (!strcmp(commands[i].name, name)) {
			*command = i;
			return 0;
		}
	}
	return bad(name ? name : "no subcommand", NULL,
		   "should be serve, bulk, rr, crr or hold; --help says more");
}

/* What can be judged only when all has been read. */
static int check_together(enum command command, const struct options *o)
{
	const char *name = commands[command].name;

	if (command == SERVE && o->check && (!o->raw || o->raw == HELLO_ECHO))
		return bad("--check", NULL,
			   "goes with --sink or --source; else the client says "
			   "whether to check");
	if (command == BULK && !o->time_ns == !o->bytes)
		return bad(name, NULL, "either --seconds or --bytes is needed");
	if (command == CRR && !o->time_ns == !o->count)
		return bad(name, NULL, "either --seconds or --count is needed");
	if (command == RR && !o->time_ns)
		return bad(name, NULL, "--seconds is needed");
	if (command == BULK && o->bytes && o->bytes < o->connections)
		return bad("--bytes", NULL,
			   "should be at least one for each stream");
	return 0;
}

static uint64_t default_timeout(enum command command, const struct options *o)
{
	if (command == SERVE)
		return SERVE_S * 1000000000ull;
	if (!o->time_ns)
		return PATIENCE_S * 1000000000ull;
	return o->time_ns + GRACE_S * 1000000000ull;
}

static int read_where(enum command command, struct options *o, int argc,
		      char **argv)
{
	const char *what = command == SERVE ? "LISTEN" : "TARGET";

	if (optind >= argc)
		return bad(what, NULL,
			   "is missing; it should be such as 127.0.0.1:9000");
	if (optind + 1 < argc)
		return bad("argument", argv[optind + 1],
			   "is one too many; there is one address");
	o->where = argv[optind];
	if (address_parse(&o->address, o->where) < 0)
		return bad(what, o->where,
			   "should be such as 127.0.0.1:9000 or [::1]:9000, "
			   "in numbers");
	return 0;
}

int args_read(enum command *command, struct options *o, int argc, char **argv)
{
	int opt;

	*o = (struct options){ .connections = 1, .size = 32, .pipeline = 1 };
	if (read_command(command, argc > 1 ? argv[1] : NULL) < 0)
		return -1;
	if (*command == HELP)
		return 0;

	opterr = 0;
	argc--;
	argv++;
	while ((opt = getopt_long(argc, argv, ":P:N:K:h", long_options, NULL)) !=
	       -1) {
		if (opt == 'h') {
			*command = HELP;
			return 0;
		}
		if (check_option(*command, opt, argv[optind - 1]) < 0 ||
		    read_option(o, opt) < 0)
			return -1;
	}
	if (read_where(*command, o, argc, argv) < 0 ||
	    check_together(*command, o) < 0)
		return -1;
	if (!o->timeout_ns)
		o->timeout_ns = default_timeout(*command, o);
	return 0;
}
