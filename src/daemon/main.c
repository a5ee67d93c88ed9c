/* SPDX-License-Identifier: MIT */
/*
 * main.c - sluice, the program.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/conf.h"
#include "daemon/server.h"
#include "daemon/signals.h"

/* Exit status, as in sluice(8). */
#define EXIT_CANNOT 1
#define EXIT_USAGE  2

/*
 * A standard descriptor that is closed would become a socket of a client, which
 * would get the log. An O_PATH descriptor in its place refuses every write.
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
		log_warn("cannot start the thread that writes messages: %s; "
			 "they are written at the end",
			 strerror(-err));
	err = server_run(conf);
	conf_unref(conf);
	return err ? EXIT_CANNOT : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct conf *conf;
	int status = EXIT_SUCCESS;

	fill_descriptors();
	signals_block();
	switch (conf_load(&conf, argc, argv)) {
	case CONF_DONE:
		break;
	case CONF_USAGE:
		status = EXIT_USAGE;
		break;
	case CONF_FAILED:
		status = EXIT_CANNOT;
		break;
	case CONF_RUN:
		status = run(conf);
		break;
	}
	log_flush();
	return status;
}
