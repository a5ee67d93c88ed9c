/* SPDX-License-Identifier: MIT */
/*
 * accept.c - what an error of accept4(2) says about the listening socket
 *
 * Linux reports a pending network error of the new connection as an error of
 * accept4(2), and so does a firewall that forbids it: those are errors of one
 * client. Without descriptors or memory the client stays in the queue, which
 * keeps the socket readable: accepting again immediately would spin (K29). A
 * socket that was shut down or destroyed (SOCK_DESTROY, as "ss -K" sends it)
 * says EINVAL for ever, and is reported as readable for ever.
 *
 * An errno that is not listed pauses: that is right for a security policy, and
 * it bounds the cost of every other one.
 */
#include "net/accept.h"

#include <errno.h>
#include <stddef.h>

#include "base/util.h"

static const struct {
	int err;
	enum accept_verdict verdict;
} table[] = {
	{ EAGAIN, ACCEPT_EMPTY },

	{ ECONNABORTED, ACCEPT_CLIENT },
	{ ECONNRESET, ACCEPT_CLIENT },
	{ EHOSTDOWN, ACCEPT_CLIENT },
	{ EHOSTUNREACH, ACCEPT_CLIENT },
	{ EINTR, ACCEPT_CLIENT },
	{ ENETDOWN, ACCEPT_CLIENT },
	{ ENETUNREACH, ACCEPT_CLIENT },
	{ ENONET, ACCEPT_CLIENT },
	{ ENOPROTOOPT, ACCEPT_CLIENT },
	{ EOPNOTSUPP, ACCEPT_CLIENT },
	{ EPERM, ACCEPT_CLIENT },
	{ EPROTO, ACCEPT_CLIENT },
	{ EPROTONOSUPPORT, ACCEPT_CLIENT },
	{ ESOCKTNOSUPPORT, ACCEPT_CLIENT },
	{ ETIMEDOUT, ACCEPT_CLIENT },

	{ EACCES, ACCEPT_PAUSE },
	{ EFAULT, ACCEPT_PAUSE },
	{ EMFILE, ACCEPT_PAUSE },
	{ ENFILE, ACCEPT_PAUSE },
	{ ENOBUFS, ACCEPT_PAUSE },
	{ ENOMEM, ACCEPT_PAUSE },
	{ ENOSR, ACCEPT_PAUSE },
	{ ENOSYS, ACCEPT_PAUSE },

	{ EBADF, ACCEPT_GONE },
	{ EINVAL, ACCEPT_GONE },
	{ ENOTSOCK, ACCEPT_GONE },
};

/**
 * accept_verdict() - what to do after accept4(2) has failed
 * @err:	its errno, positive
 */
enum accept_verdict accept_verdict(int err)
{
	for (size_t i = 0; i < array_size(table); i++)
		if (table[i].err == err)
			return table[i].verdict;
	return ACCEPT_PAUSE;
}
