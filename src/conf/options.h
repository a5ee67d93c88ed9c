/* SPDX-License-Identifier: MIT */
/*
 * options.h - the options of the command line.
 */
#ifndef CONF_OPTIONS_H
#define CONF_OPTIONS_H

#include "conf/conf.h"

enum conf_verdict options_read(struct conf *conf, int argc, char **argv,
			       const char **file);

#endif /* CONF_OPTIONS_H */
