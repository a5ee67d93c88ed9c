/* SPDX-License-Identifier: MIT */
/*
 * uring_absent.c - in place of uring.c, in a build without io_uring.
 */
#include "relay/uring.h"

#include "base/util.h"

bool uring_is_built(void)
{
	return false;
}

int uring_open(struct relay_env *env, bool multishot)
{
	return -ENOSYS;
}

void uring_close(struct relay_env *env)
{
}

void uring_start(struct relay *r)
{
}

bool uring_end(struct relay *r, enum tally_drop why)
{
	return true;
}

struct conduit *uring_conduit(struct lane *l)
{
	return NULL;
}

bool uring_leave(struct lane *l)
{
	return true;
}

void uring_settle(struct lane *l)
{
}

ssize_t uring_discard(struct lane *l)
{
	return -ENOSYS;
}

bool uring_has_failed(const struct lane *l)
{
	return false;
}

size_t uring_ahead(const struct lane *l)
{
	return 0;
}
