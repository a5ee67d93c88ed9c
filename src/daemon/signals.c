/* SPDX-License-Identifier: MIT */
/*
 * signals.c - signals, as events of the main thread's loop
 *
 * They are blocked in all threads, and read from a signalfd.
 */
#include "daemon/signals.h"

#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/log.h"
#include "base/util.h"

/*
 * First thing in the process: blocks what must not end it before it is watched.
 * SIGTERM and SIGINT may; but the kernel discards those of process 1, which would
 * then be lost.
 */
void signals_block(void)
{
	sigset_t early;

	signal(SIGXFSZ, SIG_IGN); /* stderr may be a file at its limit (K44) */
	sigemptyset(&early);
	sigaddset(&early, SIGUSR1);
	if (getpid() == 1) {
		sigaddset(&early, SIGTERM);
		sigaddset(&early, SIGINT);
	}
	sigprocmask(SIG_BLOCK, &early, NULL);
}

static void ready(struct watch *w)
{
	struct signals *s = container_of(w, struct signals, watch);
	struct signalfd_siginfo info;

	while (read(w->fd, &info, sizeof(info)) == sizeof(info))
		s->received(s, (int)info.ssi_signo);
}

/* Return: 0, or -1 and the reason has been logged. */
int signals_watch(struct signals *s, struct loop *loop,
		  void (*received)(struct signals *s, int signo))
{
	sigset_t set;
	int fd, err;

	signal(SIGPIPE, SIG_IGN); /* splice(2) has no MSG_NOSIGNAL (K11) */
	s->received = received;
	s->watch.fd = -1;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0) {
		log_error("cannot create signalfd: %s", strerror(errno));
		return -1;
	}
	err = loop_watch(loop, &s->watch, fd, EPOLLIN, ready);
	if (err) {
		log_error("cannot watch signalfd: %s", strerror(-err));
		s->watch.fd = close_fd(fd);
	}
	return err ? -1 : 0;
}

/* Harmless if signals_watch() failed. */
void signals_unwatch(struct signals *s)
{
	s->watch.fd = close_fd(s->watch.fd);
}
