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
	"      --mode=splice|copy|auto|uring  through pipes in the kernel, "
	"through\n"
	"                            buffers, as each direction's recent past "
	"says\n"
	"                            is cheaper, or through buffers by "
	"io_uring\n"
	"                            [auto]\n"
	"      --pipe-size=SIZE      bytes a pipe, 64K to 1G [1M]\n"
	"      --pipes=lend|own      lend a pipe while bytes are under way, "
	"or\n"
	"                            keep a pair for each connection [lend]\n"
	"      --buffer-size=SIZE    bytes a buffer, 4K to 16M [64K]\n"
	"      --workers=N           threads [the CPUs it may use]\n"
	"      --busy-poll=auto|off|N  before it sleeps, a thread looks for "
	"more\n"
	"                            up to N microseconds, or as long as it "
	"pays\n"
	"                            [auto]\n"
	"      --connect-timeout=TIME  for each address of a target [10s]\n"
	"      --drain-timeout=TIME  from SIGTERM to cutting off [5s]\n"
	"      --idle-timeout=TIME   end connections without a byte either "
	"way\n"
	"                            [off]\n"
	"      --half-close-timeout=TIME  the same, once one side has "
	"finished\n"
	"                            [off]\n"
	"      --max-lifetime=TIME   end connections that are older [off]\n"
	"      --linger=TIME         once a peer has reset: for the other to "
	"take\n"
	"                            what came before [30s]\n"
	"      --discard=SIZE        once a peer is gone: how much the other "
	"may\n"
	"                            still say, to nobody [64M]\n"
	"      --keepalive=IDLE:INTERVAL:COUNT  ask silent peers whether they\n"
	"                            are there, or off [2m:15s:4]\n"
	"      --dead-timeout=TIME   drop peers whose window is shut and who\n"
	"                            answer no probe [3m]\n"
	"      --user-timeout=TIME   TCP_USER_TIMEOUT on both sockets [off]\n"
	"      --rcvbuf=SIZE, --sndbuf=SIZE  SO_RCVBUF and SO_SNDBUF, on both\n"
	"                            sockets [the kernel's own tuning]\n"
	"      --notsent-lowat=SIZE  TCP_NOTSENT_LOWAT, the same [the "
	"kernel's]\n"
	"      --congestion=NAME     congestion control, the same [the "
	"kernel's]\n"
	"      --mptcp               Multipath TCP on both sockets, TCP where "
	"the\n"
	"                            kernel refuses it\n"
	"      --freebind            listen at addresses that the machine does "
	"not\n"
	"                            have yet\n"
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
