/* SPDX-License-Identifier: MIT */
/*
 * accept.h - what an error of accept4(2) says about the listening socket.
 */
#ifndef NET_ACCEPT_H
#define NET_ACCEPT_H

/**
 * enum accept_verdict - what to do after accept4(2) has failed
 * @ACCEPT_CLIENT: the error is about one client; accept the next one
 * @ACCEPT_EMPTY: no client is waiting
 * @ACCEPT_PAUSE: accept fails for now; pause and try again
 * @ACCEPT_GONE: the socket does not listen any more; open another
 */
enum accept_verdict {
	ACCEPT_CLIENT,
	ACCEPT_EMPTY,
	ACCEPT_PAUSE,
	ACCEPT_GONE,
};

enum accept_verdict accept_verdict(int err);

#endif /* NET_ACCEPT_H */
