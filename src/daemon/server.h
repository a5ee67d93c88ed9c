/* SPDX-License-Identifier: MIT */
/*
 * server.h - the process: from a configuration to the last connection.
 */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include "conf/conf.h"

int server_run(struct conf *conf);

#endif /* DAEMON_SERVER_H */
