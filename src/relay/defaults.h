/* SPDX-License-Identifier: MIT */
/*
 * defaults.h - defaults and limits that the program and the library share
 *
 * sluice(8), sluice(3) and sluice.h state them for users. The program alone has
 * timeouts of its own: those are in conf/option_table.c.
 */
#ifndef RELAY_DEFAULTS_H
#define RELAY_DEFAULTS_H

#include <stddef.h>

/* Bytes that a pipe should have; PIPE_SIZE_MIN and PIPE_SIZE_MAX are its limits. */
#define DEFAULT_PIPE_SIZE ((size_t)1 << 20)

/* Bytes of a buffer. */
#define DEFAULT_BUFFER_SIZE ((size_t)64 << 10)
#define BUFFER_SIZE_MIN	    ((size_t)4 << 10)
#define BUFFER_SIZE_MAX	    ((size_t)16 << 20)

/* Bytes that a lane reads in one turn before other lanes have theirs. */
#define DEFAULT_BUDGET ((size_t)1 << 20)

/* Once a side is gone: how long the other side may take to read what is on its
 * way to it, and how many bytes are read from that side and discarded. */
#define DEFAULT_LINGER_MS   30000u
#define DEFAULT_DISCARD_MAX ((size_t)64 << 20)

/* Pipes of a library context; the program shares out all that the quota has. */
#define DEFAULT_CONTEXT_PIPES 32u

#endif /* RELAY_DEFAULTS_H */
