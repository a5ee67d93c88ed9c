/* SPDX-License-Identifier: MIT */
/*
 * errors.h - what an error of a read or write says about the connection.
 */
#ifndef RELAY_ERRORS_H
#define RELAY_ERRORS_H

#include <errno.h>
#include <stdbool.h>

/* Errors (positive errno) with which TCP says that a connection has ended. */
static inline bool error_is_end(int err)
{
	switch (err) {
	case ECONNRESET:
	case EPIPE:
	case ETIMEDOUT:
	case ECONNABORTED:
	case ECONNREFUSED:
	case ENOTCONN:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EHOSTDOWN:
	case ENETDOWN:
	case ENETRESET:
	case ESHUTDOWN:
		return true;
	default:
		return false;
	}
}

#endif /* RELAY_ERRORS_H */
