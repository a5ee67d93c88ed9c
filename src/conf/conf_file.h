/* SPDX-License-Identifier: MIT */
/*
 * conf_file.h - rules from a file, in rinetd's form.
 */
#ifndef CONF_CONF_FILE_H
#define CONF_CONF_FILE_H

#include "conf/conf.h"

int conf_read_file(struct conf *conf, const char *path);

#endif /* CONF_CONF_FILE_H */
