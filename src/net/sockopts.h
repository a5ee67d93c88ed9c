/* SPDX-License-Identifier: MIT */
/*
 * sockopts.h - what may be set on a TCP socket beyond what a relay needs.
 */
#ifndef NET_SOCKOPTS_H
#define NET_SOCKOPTS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

/**
 * struct keepalive - when a silent peer is asked whether it is there
 * @idle_s:	seconds of silence before it is asked; 0 is never
 * @interval_s:	seconds between two questions
 * @count:	questions without an answer after which it is dead
 * @requested:	the user gave it: it is an error where the kernel refuses it
 */
struct keepalive {
	unsigned idle_s, interval_s, count;
	bool requested;
};

/**
 * struct sockopts - settings of both sockets of a connection
 * @keepalive:	not set by sockopts_set(): see sockopts_set_keepalive()
 * @user_timeout_ms: TCP_USER_TIMEOUT, in milliseconds
 * @rcvbuf, @sndbuf: bytes of payload room, about; what the kernel then keeps
 *		is twice that
 * @notsent_lowat: TCP_NOTSENT_LOWAT, in bytes
 * @congestion:	name of the algorithm
 * @mptcp:	Multipath TCP, or TCP where the kernel refuses it
 * @freebind:	listen at addresses that the machine does not have yet
 *
 * 0 or "" leaves a thing as the kernel has it.
 */
struct sockopts {
	struct keepalive keepalive;
	unsigned user_timeout_ms;
	int rcvbuf, sndbuf, notsent_lowat;
	char congestion[16];
	bool mptcp, freebind;
};

int sockopts_set(int fd, const struct sockopts *t);
int sockopts_set_freebind(int fd);
int sockopts_set_keepalive(int fd, const struct keepalive *k);
const char *sockopts_try(const struct sockopts *t, struct sockopts *got,
			 int *err);

#endif /* NET_SOCKOPTS_H */
