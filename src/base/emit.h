/* SPDX-License-Identifier: MIT */
/*
 * emit.h - write text to a descriptor without waiting for who reads it.
 */
#ifndef BASE_EMIT_H
#define BASE_EMIT_H

#include <stdbool.h>
#include <stddef.h>

bool emit(int fd, const char *text, size_t len, int wait_ms);

#endif /* BASE_EMIT_H */
