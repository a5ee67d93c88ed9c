/* SPDX-License-Identifier: MIT */
/*
 * wire.h - what client and server say to each other
 *
 *	client: hello, then payload if any		FIN after it
 *	server: payload if any, then a receipt if SINK	FIN after it
 *
 * The hello comes first on every connection and says what the server shall do
 * on it, so that one server, and a forwarder with one target, serve all the
 * subcommands:
 *
 *	SINK	read to the end, then send a receipt. Without it a client that
 *		has sent everything would not know that anything has arrived,
 *		and since it follows the client's FIN, a forwarder that makes
 *		one FIN into two fails here
 *	SOURCE	send @count bytes, or if that is 0, until the client says FIN
 *	ECHO	send back @count bytes, or if that is 0, all until the FIN
 *
 * All numbers have the byte order of the machine: client and server are this
 * program, on machines that are alike.
 */
#ifndef LOAD_WIRE_H
#define LOAD_WIRE_H

#include <stdint.h>

#define HELLO_MAGIC   0x6f6c4c53u /* "SLlo" */
#define RECEIPT_MAGIC 0x6b6f4c53u /* "SLok" */

enum hello_kind {
	HELLO_SINK = 1,
	HELLO_SOURCE,
	HELLO_ECHO,
};

struct hello {
	uint32_t magic;
	uint8_t kind;	 /* enum hello_kind */
	uint8_t stamped; /* the payload carries stamps: check, or make them */
	uint16_t stream; /* in the stamps; never 0 */
	uint64_t count;	 /* bytes; 0: no limit but the FIN */
};

struct receipt {
	uint32_t magic;
	uint32_t wrong; /* 0, or 1: a byte was wrong */
	uint64_t bytes; /* payload that arrived, or position of the wrong byte */
};

_Static_assert(sizeof(struct hello) == 16, "the hello has 16 bytes");
_Static_assert(sizeof(struct receipt) == 16, "the receipt has 16 bytes");

#endif
