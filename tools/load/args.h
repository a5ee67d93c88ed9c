/* SPDX-License-Identifier: MIT */
/*
 * args.h - the command line
 */
#ifndef LOAD_ARGS_H
#define LOAD_ARGS_H

#include "load.h"

enum command {
	SERVE,
	BULK,
	RR,
	CRR,
	HOLD,
	COMMANDS,
	HELP,
};

/*
 * Reads the command line. Returns 0; or -1 when it is not right, and one line
 * on stderr has said what would be.
 */
int args_read(enum command *command, struct options *o, int argc, char **argv);

void args_help(void);

#endif
