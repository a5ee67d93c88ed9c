/* SPDX-License-Identifier: MIT */
/*
 * shortage.h - errors (positive errno) that tell of a shortage, which may pass.
 */
#ifndef BASE_SHORTAGE_H
#define BASE_SHORTAGE_H

#include <errno.h>
#include <stdbool.h>

/* The kernel has no memory for it now. */
static inline bool shortage_of_memory(int err)
{
	return err == ENOMEM || err == ENOBUFS;
}

/* The process, or the system, has no descriptor left. */
static inline bool shortage_of_descriptors(int err)
{
	return err == EMFILE || err == ENFILE;
}

#endif /* BASE_SHORTAGE_H */
