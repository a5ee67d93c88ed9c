/* SPDX-License-Identifier: MIT */
/*
 * usage.h - what --help and --version print.
 */
#ifndef CONF_USAGE_H
#define CONF_USAGE_H

void usage_print(void);
void usage_print_version(void);

#endif /* CONF_USAGE_H */
