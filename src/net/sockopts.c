/* SPDX-License-Identifier: MIT */
/*
 * sockopts.c - what may be set on a TCP socket beyond what a relay needs
 *
 * A listening socket passes all of it on to those that it accepts (K35). Sizes
 * of buffers must be there before the handshake, which fixes the window scale.
 */
#include "net/sockopts.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"

/* 0 leaves it as the kernel has it, in all settings of struct sockopts. */
static int set_unless_0(int fd, int level, int option, int value)
{
	int err = value ? setsockopt(fd, level, option, &value, sizeof(value))
			: 0;

	return err < 0 ? -errno : 0;
}

static int set_congestion(int fd, const char *name)
{
	int err = *name ? setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name,
				     (socklen_t)strlen(name))
			: 0;

	return err < 0 ? -errno : 0;
}

/* What the kernel keeps for a buffer, as it was asked for: half of it. */
static int get_half(int fd, int option)
{
	int value = 0;
	socklen_t len = sizeof(value);

	(void)getsockopt(fd, SOL_SOCKET, option, &value, &len);
	return value / 2;
}

/* Return: NULL, or which setting was refused; *@err is its negative errno. */
static const char *set_all(int fd, const struct sockopts *t, int *err)
{
	int timeout = (int)t->user_timeout_ms;

	*err = set_unless_0(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, timeout);
	if (*err)
		return "user-timeout";
	*err = set_unless_0(fd, SOL_SOCKET, SO_RCVBUF, t->rcvbuf);
	if (*err)
		return "rcvbuf";
	*err = set_unless_0(fd, SOL_SOCKET, SO_SNDBUF, t->sndbuf);
	if (*err)
		return "sndbuf";
	*err = set_unless_0(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, t->notsent_lowat);
	if (*err)
		return "notsent-lowat";
	*err = set_congestion(fd, t->congestion);
	return *err ? "congestion" : NULL;
}

/**
 * sockopts_set() - set all but keepalive, before bind(2) or connect(2)
 *
 * Return: 0, or a negative errno.
 */
int sockopts_set(int fd, const struct sockopts *t)
{
	int err;

	(void)set_all(fd, t, &err);
	return err;
}

/* Lets a socket be bound to an address that the machine does not have yet.
 * Return: 0, or a negative errno. */
int sockopts_set_freebind(int fd)
{
	int family = AF_INET;
	socklen_t len = sizeof(family);

	(void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
	return family == AF_INET6
		       ? set_unless_0(fd, IPPROTO_IPV6, IPV6_FREEBIND, 1)
		       : set_unless_0(fd, IPPROTO_IP, IP_FREEBIND, 1);
}

/* Probes an idle peer, unless idle_s is 0. Return: 0, or a negative errno. */
int sockopts_set_keepalive(int fd, const struct keepalive *k)
{
	int err;

	if (!k->idle_s)
		return 0;
	err = set_unless_0(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)k->idle_s);
	if (!err)
		err = set_unless_0(fd, IPPROTO_TCP, TCP_KEEPINTVL,
				   (int)k->interval_s);
	if (!err)
		err = set_unless_0(fd, IPPROTO_TCP, TCP_KEEPCNT, (int)k->count);
	return err ? err : set_unless_0(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

/* A socket to try settings on; clears @got->mptcp if that is refused. */
static int open_any(const struct sockopts *t, struct sockopts *got, int *err)
{
	int fd = -1;

	if (t->mptcp) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP);
		got->mptcp = fd >= 0;
		*err = fd < 0 ? -errno : 0;
	}
	if (fd < 0)
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd;
}

/* As set_all(), with what the user has asked of listening sockets alone. */
static const char *set_requested(int fd, const struct sockopts *t, int *err)
{
	const char *refused = set_all(fd, t, err);

	if (refused)
		return refused;
	if (t->freebind)
		*err = sockopts_set_freebind(fd);
	if (*err)
		return "freebind";
	if (t->keepalive.requested && t->keepalive.idle_s)
		*err = sockopts_set_keepalive(fd, &t->keepalive);
	return *err ? "keepalive" : NULL;
}

/**
 * sockopts_try() - set all on a socket that is used for nothing else
 * @got:	filled in with @t, but for sizes of buffers that the kernel has
 *		made smaller, and MPTCP where there is only TCP
 * @err:	filled in with a negative errno if something was refused
 *
 * Return: NULL, or the name of what was refused.
 */
const char *sockopts_try(const struct sockopts *t, struct sockopts *got, int *err)
{
	cleanup(close_fdp) int fd = -1;
	const char *refused;
	int no_mptcp = 0;

	*got = *t;
	*err = 0;
	fd = open_any(t, got, &no_mptcp);
	if (fd < 0)
		return NULL; /* listening will fail, and say so */
	refused = set_requested(fd, t, err);
	if (refused)
		return refused;
	*err = no_mptcp;
	if (t->rcvbuf)
		got->rcvbuf = get_half(fd, SO_RCVBUF);
	if (t->sndbuf)
		got->sndbuf = get_half(fd, SO_SNDBUF);
	return NULL;
}
