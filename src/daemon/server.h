/* SPDX-License-Identifier: MIT */
/*
 * server.h - the workers, the listening sockets, and the signals.
 */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include <net/if.h>

#include "daemon/lookup.h"
#include "proxy/worker.h"

/**
 * struct listen_socket - a socket that listens, where, and what for
 * @fd:		its number stays when another socket takes its place
 * @lacks:	of enum sock_lack
 * @device:	the interface of a link-local address, else "": one that was
 *		made anew has another index
 *
 * Once its worker runs, that alone changes it.
 */
struct listen_socket {
	int fd;
	struct addr at;
	unsigned lacks;
	char device[IF_NAMESIZE];
	const struct rule *rule;
};

/**
 * struct server - what main() runs
 * @open:	listening sockets: they outlive the workers, who only watch
 *		them; @n_open of them
 * @loop:	of the main thread: signals, and the drain's deadline
 * @lookup:	names of rules that are still to be resolved
 * @report:	when stdout should have taken the reports
 * @order:	the last one that the workers were given
 * @end_now:	cut off what is left, rather than wait for it
 * @start_gate:	held by the main thread until the workers may run
 */
struct server {
	const struct conf *conf;
	struct worker *workers;
	unsigned n_workers, n_started;
	pthread_mutex_t start_gate;
	struct outgoing_table outgoing;
	struct listen_socket *open;
	unsigned n_open;
	struct loop loop;
	struct watch signals;
	struct timer drain, report;
	struct lookup lookup;
	enum worker_order order;
	bool end_now;
	uint64_t started_ns;
};

int server_run(const struct conf *conf);
void server_ring(struct server *s);
void server_wait_start(struct server *s);
unsigned server_load(const struct server *s);
struct worker *server_least_loaded(struct server *s, struct worker *self,
				   unsigned more);

#endif /* DAEMON_SERVER_H */
