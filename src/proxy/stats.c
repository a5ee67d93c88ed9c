/* SPDX-License-Identifier: MIT */
/*
 * stats.c - names of the counters.
 */
#include "proxy/stats.h"

#include <assert.h>

#include "base/util.h"

const char *const flow_end_names[] = {
#define X(name, words) #name,
	FLOW_ENDS(X)
#undef X
};

const char *const flow_end_words[] = {
#define X(name, words) words,
	FLOW_ENDS(X)
#undef X
};

static_assert(array_size(flow_end_names) == FLOW_END_COUNT &&
		      array_size(flow_end_words) == FLOW_END_COUNT,
	      "one for each end");
