/* SPDX-License-Identifier: MIT */
/*
 * engine.c - of a build that has no engine beside the pump.
 */
#include "relay/engine.h"

const struct engine_ops *engine_of(enum relay_mode mode)
{
	return NULL;
}
