/* SPDX-License-Identifier: MIT */
/*
 * usage.c - what --help and --version print.
 */
#include "daemon/usage.h"

#include <stdio.h>

static const char text[] =
	"Usage: sluice [OPTIONS] LISTEN TARGET [LISTEN TARGET ...]\n"
	"       sluice [OPTIONS] -c FILE\n"
	"\n"
	"Forwards TCP connections from LISTEN to TARGET, byte for byte, with\n"
	"splice(2), so that the bytes stay in the kernel.\n"
	"\n"
	"  LISTEN   PORT, ADDR:PORT, [V6]:PORT, *:PORT\n"
	"  TARGET   HOST:PORT, [V6]:PORT\n"
	"\n"
	"  -c, --config=FILE         rules from FILE, one a line:\n"
	"                            bindaddr bindport connectaddr "
	"connectport\n"
	"      --mode=splice|copy    through pipes in the kernel, or through\n"
	"                            buffers [splice]\n"
	"      --pipe-size=SIZE      bytes a pipe, 64K to 1G [1M]\n"
	"      --pipes=lend|own      lend a pipe while bytes are under way, "
	"or\n"
	"                            keep a pair for each connection [lend]\n"
	"      --buffer-size=SIZE    bytes a buffer, 4K to 16M [64K]\n"
	"      --workers=N           threads [the CPUs it may use]\n"
	"      --connect-timeout=TIME  for each address of a target [10s]\n"
	"      --drain-timeout=TIME  from SIGTERM to cutting off [5s]\n"
	"      --log-level=LEVEL     error, warn, info, debug [warn]\n"
	"      --stats[=text|json]   print totals at the end; SIGUSR1 prints\n"
	"                            them at any time\n"
	"  -h, --help                print this\n"
	"  -V, --version             print the version\n"
	"\n"
	"Example: sluice 8080 192.0.2.1:80\n"
	"\n"
	"See sluice(8).\n";

void usage_print(void)
{
	fputs(text, stdout);
}

void usage_print_version(void)
{
	puts("sluice " SLUICE_VERSION);
}
