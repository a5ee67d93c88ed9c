/* SPDX-License-Identifier: MIT */
/*
 * sock.h - TCP sockets, one system call at a time.
 *
 * All sockets are nonblocking and close-on-exec. Functions return 0 or a
 * descriptor, or a negative errno.
 */
#ifndef NET_SOCK_H
#define NET_SOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "net/addr.h"
#include "net/sockopts.h"

/* Options that improve a connection and that the kernel has refused. */
enum sock_lack {
	SOCK_LACKS_NODELAY = 1,
	SOCK_LACKS_OOBINLINE = 2,
	SOCK_LACKS_REUSEADDR = 4,
};

int sock_listen(const struct addr *at, int backlog, const struct sockopts *t);
int sock_accept(int listener, struct addr *from);
int sock_connect(const struct addr *to, const struct sockopts *t);
int sock_connected(int fd);
bool sock_is_writable(int fd);
bool sock_is_local(const struct addr *to);
int sock_local_addr(int fd, struct addr *ret);
int sock_original_addr(int fd, struct addr *ret);
bool sock_is_self(int fd, const struct addr *to);
bool sock_is_shortage(int err);
int sock_prepare(int fd);
void sock_keep_urgent(int fd);
unsigned sock_lacks(int fd);
uint64_t sock_mptcp_refused(void);
unsigned sock_unanswered_ms(int fd);
int sock_nonblock(int fd);

int sock_outq(int fd);
bool sock_at_mark(int fd);
short sock_unread(int fd);
bool sock_fin_received(int fd, uint64_t read);
uint64_t sock_read_before(int fd);
void sock_set_abortive(int fd, bool on);
void sock_close(int fd, bool reset);

#endif /* NET_SOCK_H */
