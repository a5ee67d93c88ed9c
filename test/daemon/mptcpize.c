/* SPDX-License-Identifier: MIT */
/*
 * What "mptcpize run" has a program do, by LD_PRELOAD: its TCP sockets are MPTCP.
 */
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define TYPE_MASK 15

__attribute__((visibility("default"))) int socket(int domain, int type,
						  int protocol)
{
	static int (*next)(int domain, int type, int protocol);

	if (!next)
		next = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
	if ((domain == AF_INET || domain == AF_INET6) &&
	    (type & TYPE_MASK) == SOCK_STREAM && !protocol)
		protocol = 262; /* IPPROTO_MPTCP */
	return next(domain, type, protocol);
}
