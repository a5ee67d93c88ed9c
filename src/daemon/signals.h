/* SPDX-License-Identifier: MIT */
/*
 * signals.h - signals, as events of the main thread's loop.
 */
#ifndef DAEMON_SIGNALS_H
#define DAEMON_SIGNALS_H

#include "net/loop.h"

/**
 * struct signals - those that are watched
 * @received:	called for each, with its number
 */
struct signals {
	struct watch watch;
	void (*received)(struct signals *s, int signo);
};

void signals_block(void);
int signals_watch(struct signals *s, struct loop *loop,
		  void (*received)(struct signals *s, int signo));
void signals_unwatch(struct signals *s);

#endif /* DAEMON_SIGNALS_H */
