/* SPDX-License-Identifier: MIT */
/*
 * The simulated kernel against the real one.
 *
 * What the model proves of the pump is worth as much as the simulation is like
 * Linux. Here both are told the same, by dice: a peer sends, also urgent bytes,
 * says FIN, resets; we read, by recv(2) or splice(2), peek, write, shut down,
 * ask for the mark. Each answer must be the same, and so must be what poll says
 * and what epoll's edge says after it.
 *
 *	AGREES_SEED=n	begin with this seed; a failure tells which it was
 *	AGREES_ROUNDS=n	so many seeds
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "model/sim.h"
#include "support/clock.h"
#include "support/peer.h"
#include "support/suite.h"

#define ALL   (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET)
#define STEPS 14

enum op {
	PEER_SEND,
	PEER_URGENT,
	PEER_FIN,
	PEER_RST,
	OUR_RECV,
	OUR_PEEK,
	OUR_SPLICE,
	OUR_URGENT,
	OUR_MARK,
	OUR_SEND,
	OUR_SHUTDOWN,
	OPS
};

static const char *const names[OPS] = {
	"peer sends",	 "peer sends urgent",
	"peer says FIN", "peer resets",
	"recv",		 "recv MSG_PEEK",
	"splice",	 "recv MSG_OOB",
	"SIOCATMARK",	 "send",
	"shutdown",
};

/**
 * struct twins - the same connection in both kernels
 * @fd:		the peer's end and ours; @pipe: empty between any two steps
 */
static struct twins {
	int fd[2], pipe[2], ep;
	struct sim_sock *sim;
	struct sim_pipe *sim_pipe;
	bool fin, rst, shut;
	uint64_t said;
} t;

static uint64_t state;

static unsigned dice(unsigned n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % n;
}

static void open_both(bool inlined)
{
	static const struct sim_rules rules = { .slots = SIM_SLOTS,
						.eager = true };
	struct epoll_event ev = { .events = ALL };
	int one = 1, fd[2];

	t = (struct twins){ 0 };
	tcp_pair(t.fd);
	peer_nodelay(t.fd[0]);
	peer_nonblock(t.fd[1]);
	ck_assert_int_eq(pipe2(t.pipe, O_NONBLOCK), 0);
	t.ep = epoll_create1(0);
	if (inlined)
		setsockopt(t.fd[1], SOL_SOCKET, SO_OOBINLINE, &one, sizeof(one));
	epoll_ctl(t.ep, EPOLL_CTL_ADD, t.fd[1], &ev);

	sim_reset(&rules);
	t.sim = sim_sock_new(100000, 100000);
	t.sim->twin = sim_sock_new(1, 1);
	t.sim->twin->fin_in = true; /* so that we may say ours */
	t.sim->oobinline = inlined;
	ck_assert_int_eq(sim_pipe_new(fd), 0);
	t.sim_pipe = sim_file(fd[0])->pipe;
	sim_epoll_ctl(EPOLL_CTL_ADD, t.sim->file, &ev);
}

static void close_both(void)
{
	for (int i = 0; i < 2; i++) {
		close(t.pipe[i]);
		if (i || !t.rst)
			close(t.fd[i]);
	}
	close(t.ep);
}

/*
 * A packet may wake more than once, and be seen to have arrived before the last
 * of it: who asks for the socket's lock waits until it has been dealt with.
 */
static void await_wake_ups(void)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	getsockopt(t.fd[1], IPPROTO_TCP, TCP_INFO, &info, &len);
}

/* Waits until our kernel has all that the peer's has sent. */
static void await_arrival(void)
{
	int64_t end = now_ms() + 5000;
	int one = 1;

	while (!t.rst && peer_unacked(t.fd[0])) {
		ck_assert_int_lt(now_ms(), end);
		setsockopt(t.fd[1], IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one));
	}
	if (t.rst)
		peer_wait(t.fd[1], 0, 5000); /* HUP comes unasked */
	else if (t.fin)
		peer_wait(t.fd[1], POLLRDHUP, 5000);
	await_wake_ups();
}

/*
 * Waits until the peer's kernel has acknowledged our FIN, which makes an edge of
 * its own: a FIN may be acknowledged 40 ms late, and by then a machine that is
 * slow enough has gone on to other things.
 */
static void await_fin_acked(void)
{
	int64_t end = now_ms() + 5000;
	int one = 1;

	while (!t.rst && peer_unacked(t.fd[1])) {
		ck_assert_int_lt(now_ms(), end);
		setsockopt(t.fd[0], IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one));
	}
	await_wake_ups();
}

static bool is_possible(enum op op)
{
	switch (op) {
	case PEER_SEND:
	case PEER_URGENT:
	case PEER_FIN:
		return !t.fin && !t.rst;
	case PEER_RST:
		/* after both FINs there is no connection any more */
		return !t.rst && !(t.fin && t.shut) && !dice(3);
	case OUR_SHUTDOWN:
		return !t.shut && !dice(3);
	default:
		return true;
	}
}

static void peer_does(enum op op, unsigned n)
{
	static const char bytes[16];

	if (op == PEER_SEND || op == PEER_URGENT) {
		ck_assert_int_eq(send(t.fd[0], bytes, n,
				      op == PEER_URGENT ? MSG_OOB : 0),
				 n);
		if (op == PEER_URGENT)
			peer_urgent(t.sim);
		else
			peer_send(t.sim, n);
	} else if (op == PEER_FIN) {
		shutdown(t.fd[0], SHUT_WR);
		peer_fin(t.sim);
		t.fin = true;
	} else {
		peer_reset(t.fd[0]);
		peer_dies(t.sim, 0);
		t.rst = true;
	}
	await_arrival();
}

static int real_does(enum op op, unsigned n)
{
	char buf[64] = { 0 };
	int yes;
	ssize_t k;

	switch (op) {
	case OUR_RECV:
		k = recv(t.fd[1], buf, n, 0);
		break;
	case OUR_PEEK:
		k = recv(t.fd[1], buf, n, MSG_PEEK);
		break;
	case OUR_URGENT:
		k = recv(t.fd[1], buf, 1, MSG_OOB);
		break;
	case OUR_SPLICE:
		k = splice(t.fd[1], NULL, t.pipe[1], NULL, n, SPLICE_F_NONBLOCK);
		if (k > 0)
			ck_assert_int_eq(read(t.pipe[0], buf, sizeof(buf)), k);
		break;
	case OUR_MARK:
		k = ioctl(t.fd[1], SIOCATMARK, &yes);
		k = k ? k : yes;
		break;
	case OUR_SEND:
		k = send(t.fd[1], buf, 1, MSG_NOSIGNAL);
		break;
	default:
		k = shutdown(t.fd[1], SHUT_WR);
	}
	return k < 0 ? -errno : (int)k;
}

static int sim_does(enum op op, unsigned n)
{
	char buf[64];
	ssize_t k;

	switch (op) {
	case OUR_RECV:
		return (int)tcp_recv(t.sim, buf, n, 0);
	case OUR_PEEK:
		return (int)tcp_recv(t.sim, buf, n, MSG_PEEK);
	case OUR_URGENT:
		return (int)tcp_recv(t.sim, buf, 1, MSG_OOB);
	case OUR_SPLICE:
		k = sim_splice_in(t.sim, t.sim_pipe, n);
		while (sim_pipe_read(t.sim_pipe, buf, sizeof(buf)) > 0)
			;
		return (int)k;
	case OUR_MARK:
		return tcp_at_mark(t.sim);
	case OUR_SEND:
		k = tcp_room(t.sim, 1);
		t.sim->sent += k > 0;
		peer_read(t.sim, 1);
		return (int)k;
	default:
		return tcp_shutdown(t.sim);
	}
}

/* Both do the same. Return: what the real one said. */
static int both_do(enum op op, unsigned n, unsigned long seed)
{
	int real = 0, sim_ret = 0;

	if (op < OUR_RECV) {
		peer_does(op, n);
	} else {
		real = real_does(op, n);
		sim_ret = sim_does(op, n);
		sim_settle(t.sim->file);
	}
	if (op == OUR_SHUTDOWN && !real) {
		t.shut = true;
		await_fin_acked();
		peer_read(t.sim, SIZE_MAX);
	}
	ck_assert_msg(real == sim_ret, "seed %lu: %s(%u) says %d, not %d", seed,
		      names[op], n, real, sim_ret);
	return real;
}

static void compare(enum op op, unsigned long seed)
{
	struct pollfd p = { t.fd[1], POLLIN | POLLOUT | POLLPRI | POLLRDHUP, 0 };
	struct epoll_event real = { 0 }, simulated = { 0 };

	poll(&p, 1, 0);
	ck_assert_msg((uint32_t)p.revents == tcp_poll(t.sim),
		      "seed %lu: after %s poll says %#x, not %#x", seed,
		      names[op], p.revents, tcp_poll(t.sim));
	/* The wake-up may be a moment behind what it tells of. */
	sim_epoll_wait(&simulated, 1);
	epoll_wait(t.ep, &real, 1, simulated.events ? 1000 : 0);
	ck_assert_msg(real.events == simulated.events,
		      "seed %lu: after %s epoll says %#x, not %#x", seed,
		      names[op], real.events, simulated.events);
}

static void one_seed(unsigned long seed)
{
	state = seed * 2654435761u;
	open_both(dice(4));
	compare(PEER_SEND, seed);
	for (int i = 0; i < STEPS; i++) {
		enum op op = (enum op)dice(OPS);
		unsigned n = op == PEER_URGENT ? 1 : 1 + dice(6);

		if (!is_possible(op))
			continue;
		if (getenv("AGREES_SEED"))
			support_note("%s(%u): %d", names[op], n,
				     both_do(op, n, seed));
		else
			both_do(op, n, seed);
		compare(op, seed);
	}
	close_both();
}

START_TEST(the_simulated_kernel_answers_as_linux_does)
{
	const char *text = getenv("AGREES_SEED"),
		   *rounds = getenv("AGREES_ROUNDS");
	unsigned long seed = text ? strtoul(text, NULL, 0) : 1;
	unsigned long n = rounds ? strtoul(rounds, NULL, 0) : 120;

	while (n--)
		one_seed(seed++);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("agrees");
	TCase *tc = support_case(s, "agrees");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, the_simulated_kernel_answers_as_linux_does);
	return support_main(s);
}
