/* SPDX-License-Identifier: MIT */
/*
 * sock.c - TCP sockets, one system call at a time.
 */
#include "net/sock.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/shortage.h"
#include "base/util.h"

/* Of tcpi_state: <netinet/tcp.h> has names, and an older struct tcp_info. */
enum {
	STATE_ESTABLISHED = 1,
	STATE_FIN_WAIT1 = 4,
	STATE_FIN_WAIT2 = 5,
};

/* Sockets that are TCP because the kernel refused MPTCP; of all threads. */
static _Atomic uint64_t mptcp_refused;

uint64_t sock_mptcp_refused(void)
{
	return atomic_load_explicit(&mptcp_refused, memory_order_relaxed);
}

/* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST, whose headers clash with libc's. */
#define ORIGINAL_DST 80

static int set(int fd, int level, int option, int value)
{
	int err = setsockopt(fd, level, option, &value, sizeof(value));

	return err < 0 ? -errno : 0;
}

/* Return: as socket(2). */
static int open_stream(int family, const struct sockopts *t)
{
	int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, fd;

	if (!t->mptcp)
		return socket(family, type, 0);
	fd = socket(family, type, IPPROTO_MPTCP);
	if (fd >= 0 || sock_is_shortage(errno))
		return fd;
	fd = socket(family, type, 0);
	if (fd >= 0)
		atomic_fetch_add_explicit(&mptcp_refused, 1,
					  memory_order_relaxed);
	return fd;
}

/* Sets what improves a connection and does no harm where it is refused. */
static void improve(int fd)
{
	(void)set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	sock_keep_urgent(fd);
}

/* Needed at :: alone, which would take IPv4 clients too. */
static int set_v6only(int fd, const struct addr *at)
{
	int err = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);

	return addr_is_any(at) ? err : 0;
}

/**
 * sock_listen() - listen at an address
 * @at:		where; an IPv6 address takes IPv6 clients alone
 * @backlog:	as for listen(2)
 * @t:		settings
 *
 * Accepted sockets inherit all that is set here (K35), which saves calls. What
 * only improves a connection may be refused: see sock_lacks().
 *
 * Return: descriptor, or a negative errno.
 */
int sock_listen(const struct addr *at, int backlog, const struct sockopts *t)
{
	cleanup(close_fdp) int fd = open_stream(at->sa.sa_family, t);
	int err = 0;

	if (fd < 0)
		return -errno;
	(void)set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	improve(fd);
	if (at->sa.sa_family == AF_INET6)
		err = set_v6only(fd, at);
	if (!err && t->freebind)
		err = sockopts_set_freebind(fd);
	if (!err)
		err = sockopts_set(fd, t);
	if (err)
		return err;
	sock_set_abortive(fd, true);
	if (bind(fd, &at->sa, addr_len(at)) < 0 || listen(fd, backlog) < 0)
		return -errno;
	return steal_fd(&fd);
}

/**
 * sock_accept() - take one waiting client
 * @from:	filled in with its address
 *
 * Return: descriptor, or a negative errno of accept4(2).
 */
int sock_accept(int listener, struct addr *from)
{
	socklen_t len = sizeof(*from);
	int fd = accept4(listener, &from->sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/**
 * sock_connect() - begin to connect
 * @t:		settings
 *
 * The outcome is sock_connected()'s to tell, once the socket is writable.
 *
 * Return: descriptor, or a negative errno when it has failed already.
 */
int sock_connect(const struct addr *to, const struct sockopts *t)
{
	cleanup(close_fdp) int fd = open_stream(to->sa.sa_family, t);
	int err;

	if (fd < 0)
		return -errno;
	improve(fd);
	err = sockopts_set(fd, t);
	if (err)
		return err;
	sock_set_abortive(fd, true);
	if (connect(fd, &to->sa, addr_len(to)) < 0 && errno != EINPROGRESS)
		return -errno;
	return steal_fd(&fd);
}

/**
 * sock_connected() - how a connect ended
 *
 * Only for a socket that nothing has been read from: asking eats a pending
 * error (K20).
 *
 * Return: 0, or the negative errno that it failed with.
 */
int sock_connected(int fd)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return -errno;
	return -err;
}

/* Whether a connect has succeeded, and nothing has failed since. */
bool sock_is_writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, 0) == 1 && p.revents == POLLOUT;
}

/* Whether an interface of this machine has the address @a, whatever the port. */
static bool is_assigned(const struct addr *a)
{
	struct ifaddrs *list, *i;
	bool found = false;

	if (getifaddrs(&list) < 0)
		return false;
	for (i = list; i && !found; i = i->ifa_next) {
		struct addr one = { 0 };

		if (!i->ifa_addr || i->ifa_addr->sa_family != a->sa.sa_family)
			continue;
		memcpy(&one, i->ifa_addr, addr_len(a));
		addr_set_port(&one, addr_port(a));
		found = addr_equal(&one, a);
	}
	freeifaddrs(list);
	return found;
}

/* Whether a packet to @to would come from @to; no packet is sent. */
static bool is_own_source(const struct addr *to)
{
	cleanup(close_fdp) int fd =
		socket(to->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct addr from;
	socklen_t len = sizeof(from);

	if (fd < 0 || connect(fd, &to->sa, addr_len(to)) < 0 ||
	    getsockname(fd, &from.sa, &len) < 0)
		return false;
	addr_set_port(&from, addr_port(to));
	return addr_equal(&from, to);
}

/**
 * sock_is_local() - whether an address is one of this machine
 *
 * Two questions, since each misses some: a secondary address is reached from
 * the primary one (K42), and the addresses of a local route are on no
 * interface. For the start: it reads all addresses of the machine.
 */
bool sock_is_local(const struct addr *to)
{
	if (addr_is_any(to) || (to->sa.sa_family == AF_INET &&
				ntohl(to->in.sin_addr.s_addr) >> 24 == 127))
		return true;
	return is_own_source(to) || is_assigned(to);
}

/* The address on this side. Return: 0, or a negative errno. */
int sock_local_addr(int fd, struct addr *ret)
{
	socklen_t len = sizeof(*ret);

	return getsockname(fd, &ret->sa, &len) < 0 ? -errno : 0;
}

/* Where the peer of an accepted socket connected to, if the kernel redirected
 * it to us. Return: 0, or a negative errno. */
int sock_original_addr(int fd, struct addr *ret)
{
	socklen_t len = sizeof(*ret);
	int family = AF_INET;
	socklen_t family_len = sizeof(family);

	(void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &family_len);
	return getsockopt(fd, family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP,
			  ORIGINAL_DST, ret, &len) < 0
		       ? -errno
		       : 0;
}

/* Whether a connect to @to, on this machine, has met itself (K25). */
bool sock_is_self(int fd, const struct addr *to)
{
	struct addr local;
	socklen_t len = sizeof(local);

	return !getsockname(fd, &local.sa, &len) && addr_equal(&local, to);
}

/* Whether a positive errno is for want of something that may come back. */
bool sock_is_shortage(int err)
{
	return shortage_of_descriptors(err) || shortage_of_memory(err);
}

/**
 * sock_prepare() - set what a relayed TCP socket needs
 *
 * No Nagle: what one peer sent at once must not wait for the other's
 * acknowledgement (K8). Urgent data in line: see relay/urgent.c.
 *
 * Return: 0, or a negative errno.
 */
int sock_prepare(int fd)
{
	int err = set(fd, IPPROTO_TCP, TCP_NODELAY, 1);

	return err ? err : set(fd, SOL_SOCKET, SO_OOBINLINE, 1);
}

/*
 * Has urgent data arrive in its place. An accepted socket inherits that, unless
 * its listener is MPTCP, which refuses it, and it is not.
 */
void sock_keep_urgent(int fd)
{
	(void)set(fd, SOL_SOCKET, SO_OOBINLINE, 1);
}

/* Whether an option that was set is not. */
static bool lacks(int fd, int level, int option)
{
	int value = 1;
	socklen_t len = sizeof(value);

	return !getsockopt(fd, level, option, &value, &len) && !value;
}

/* Return: of enum sock_lack, what a socket of sock_listen() does not have. */
unsigned sock_lacks(int fd)
{
	unsigned set = 0;

	if (lacks(fd, IPPROTO_TCP, TCP_NODELAY))
		set |= SOCK_LACKS_NODELAY;
	if (lacks(fd, SOL_SOCKET, SO_OOBINLINE))
		set |= SOCK_LACKS_OOBINLINE;
	if (lacks(fd, SOL_SOCKET, SO_REUSEADDR))
		set |= SOCK_LACKS_REUSEADDR;
	return set;
}

/**
 * sock_unanswered_ms() - how long the peer owes an answer to a window probe
 *
 * Return: milliseconds since it last acknowledged anything, 0 if its window is
 *	not being probed (keepalive's questions are counted as probes too, but
 *	not with bytes waiting to be sent).
 */
unsigned sock_unanswered_ms(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
	    !info.tcpi_probes || info.tcpi_unacked || !info.tcpi_notsent_bytes)
		return 0;
	return info.tcpi_last_ack_recv;
}

int sock_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	if (!(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

/**
 * sock_outq() - bytes the peer's kernel has not acknowledged
 *
 * A FIN on its way counts as one.
 *
 * Return: how many, 0 where there is no such thing, or a negative errno.
 */
int sock_outq(int fd)
{
	int n;

	if (ioctl(fd, SIOCOUTQ, &n) == 0)
		return n;
	return errno == ENOTTY || errno == EINVAL || errno == EOPNOTSUPP
		       ? 0
		       : -errno;
}

/* Whether the next byte to read follows urgent data. */
bool sock_at_mark(int fd)
{
	int at;

	return !ioctl(fd, SIOCATMARK, &at) && at;
}

/**
 * sock_unread() - what has arrived and was not read yet
 *
 * Return: POLLIN, and POLLPRI if urgent data is among it; both if in doubt. 0 if
 *	there is nothing, and it has not ended.
 */
short sock_unread(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLPRI };
	int n = poll(&p, 1, 0);

	return n < 0 ? p.events : n ? p.revents : 0;
}

/* What has arrived and was read: bytes, and FIN even if it was not read, which
 * counts as one. Return: whether that is known. */
static bool get_read(int fd, struct tcp_info *info, uint64_t *read)
{
	socklen_t len = sizeof(*info);
	int unread;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) < 0 ||
	    ioctl(fd, SIOCINQ, &unread) < 0)
		return false;
	*read = info->tcpi_bytes_received - (uint64_t)unread;
	return true;
}

/* MPTCP counts a FIN nowhere, and bytes of one path alone. */
static bool is_mptcp(int fd)
{
	int protocol = 0;
	socklen_t len = sizeof(protocol);

	return !getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) &&
	       protocol == IPPROTO_MPTCP;
}

/**
 * sock_fin_received() - whether the peer's FIN has arrived, read or not
 * @read:	bytes that have been read from the socket, ever
 *
 * Return: that, true where there is no telling.
 */
bool sock_fin_received(int fd, uint64_t read)
{
	struct tcp_info info;
	uint64_t all;

	return is_mptcp(fd) || !get_read(fd, &info, &all) || all > read;
}

/* Bytes that have been read from a socket so far, for sock_fin_received(). */
uint64_t sock_read_before(int fd)
{
	struct tcp_info info;
	uint64_t all;

	if (!get_read(fd, &info, &all) || !all)
		return 0;
	/* A FIN has arrived, or the connection is dead and who knows. */
	if (info.tcpi_state != STATE_ESTABLISHED &&
	    info.tcpi_state != STATE_FIN_WAIT1 &&
	    info.tcpi_state != STATE_FIN_WAIT2)
		all--;
	return all;
}

/**
 * sock_set_abortive() - choose how the kernel ends a connection by itself
 * @on:		with RST, dropping what was not sent yet (K30); else with FIN
 *
 * The kernel closes the sockets of a process that is killed, and without this
 * the peer of a connection that was cut sees the same FIN as after a complete
 * one (K38). It must be off before an orderly close (K39). A socket that does not
 * support it ends with FIN.
 */
void sock_set_abortive(int fd, bool on)
{
	struct linger linger = { .l_onoff = on, .l_linger = 0 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

/**
 * sock_close() - close for good
 * @reset:	send RST instead of FIN; drops what was not sent yet (K30)
 */
void sock_close(int fd, bool reset)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	if (fd < 0)
		return;
	/* The second way is not for all kinds of socket. */
	if (reset && setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) < 0)
		(void)connect(fd, &none, sizeof(none));
	close(fd);
}
