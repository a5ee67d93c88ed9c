/* SPDX-License-Identifier: MIT */
/*
 * options.h - the options of the command line.
 */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include "daemon/conf.h"

enum conf_verdict options_read(struct conf *conf, int argc, char **argv,
			       const char **file);

#endif /* DAEMON_OPTIONS_H */
