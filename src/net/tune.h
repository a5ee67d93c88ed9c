/* SPDX-License-Identifier: MIT */
/*
 * tune.h - what may be set on a TCP socket beyond what a relay needs.
 */
#ifndef NET_TUNE_H
#define NET_TUNE_H

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
 * struct tuning - settings of both sockets of a connection
 * @keepalive:	not set by tune(): see tune_keepalive()
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
struct tuning {
	struct keepalive keepalive;
	unsigned user_timeout_ms;
	int rcvbuf, sndbuf, notsent_lowat;
	char congestion[16];
	bool mptcp, freebind;
};

int tune(int fd, const struct tuning *t);
int tune_freebind(int fd);
int tune_keepalive(int fd, const struct keepalive *k);
const char *tune_try(const struct tuning *t, struct tuning *got, int *err);

#endif /* NET_TUNE_H */
