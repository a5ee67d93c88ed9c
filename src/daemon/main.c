/* SPDX-License-Identifier: MIT */
/*
 * main.c - sluice, the program.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/conf.h"
#include "daemon/server.h"

/* Exit status, as in sluice(8). */
#define EXIT_CANNOT 1
#define EXIT_USAGE  2

int main(int argc, char **argv)
{
	struct conf conf;
	sigset_t early;
	int status;

	/* "At any time" includes before the signals are watched. For process 1
	 * the kernel would discard what it has no handler for. */
	sigemptyset(&early);
	sigaddset(&early, SIGUSR1);
	if (getpid() == 1) {
		sigaddset(&early, SIGTERM);
		sigaddset(&early, SIGINT);
	}
	sigprocmask(SIG_BLOCK, &early, NULL);

	switch (conf_load(&conf, argc, argv)) {
	case CONF_DONE:
		status = EXIT_SUCCESS;
		break;
	case CONF_USAGE:
		status = EXIT_USAGE;
		break;
	case CONF_FAILED:
		status = EXIT_CANNOT;
		break;
	default:
		log_set_level(conf.log_level);
		status = server_run(&conf) ? EXIT_CANNOT : EXIT_SUCCESS;
		break;
	}
	conf_fini(&conf);
	return status;
}
