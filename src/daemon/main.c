/* SPDX-License-Identifier: MIT */
/*
 * main.c - sluice, the program.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/conf.h"
#include "daemon/server.h"

/* Exit status, as in sluice(8). */
#define EXIT_CANNOT 1
#define EXIT_USAGE  2

/*
 * A standard descriptor that is closed would become a socket of a client, and
 * get the messages. What stands in its place refuses them.
 */
static void fill_descriptors(void)
{
	int fd;

	do
		fd = open("/", O_PATH | O_CLOEXEC);
	while (fd >= 0 && fd < STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

static int run(struct conf *conf)
{
	int err;

	log_set_level(conf->log_level);
	err = log_start();
	if (err)
		log_warn("messages wait: no thread to write them: %s",
			 strerror(-err));
	return server_run(conf) ? EXIT_CANNOT : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct conf conf;
	sigset_t early;
	int status;

	fill_descriptors();
	signal(SIGXFSZ, SIG_IGN); /* stderr may be a file at its limit */

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
		status = run(&conf);
		break;
	}
	conf_fini(&conf);
	log_flush();
	return status;
}
