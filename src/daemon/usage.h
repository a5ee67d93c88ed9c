/* SPDX-License-Identifier: MIT */
/*
 * usage.h - what --help and --version print.
 */
#ifndef DAEMON_USAGE_H
#define DAEMON_USAGE_H

void usage_print(void);
void usage_print_version(void);

#endif /* DAEMON_USAGE_H */
