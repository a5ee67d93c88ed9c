/* SPDX-License-Identifier: MIT */
/*
 * routes.c - a route for each rule of a configuration.
 */
#include "daemon/routes.h"

#include <errno.h>
#include <stdlib.h>

/* Return: 0; or -ENOMEM and there is nothing to give back. */
int routes_init(struct routes *rs, struct conf *conf)
{
	*rs = (struct routes){ .at = calloc(conf->n_rules, sizeof(*rs->at)) };
	if (!rs->at)
		return -ENOMEM;
	for (; rs->n < conf->n_rules; rs->n++) {
		rs->at[rs->n] = route_new(conf, conf->rules[rs->n]);
		if (!rs->at[rs->n]) {
			routes_fini(rs);
			return -ENOMEM;
		}
	}
	return 0;
}

/* Harmless for one that is all zero. */
void routes_fini(struct routes *rs)
{
	while (rs->n)
		route_unref(rs->at[--rs->n]);
	free(rs->at);
	rs->at = NULL;
}
