/* SPDX-License-Identifier: MIT */
/*
 * sim.h - a kernel with nothing in it but what the pump asks of one
 *
 * Sockets whose other ends are scripted, pipes made of slots, one epoll set,
 * and a clock that only moves when it is told to. It is made from what was
 * measured of Linux (the K numbers, each pinned by a program under
 * test/kernel), not from what the pump expects.
 *
 * No byte is stored anywhere. What a peer says is a stream of stamps, so a
 * queue or a slot is a range of positions, and every byte that leaves is held
 * against the position at which it must be: the first wrong one is seen where
 * it is sent, and by which call.
 */
#ifndef MODEL_SIM_H
#define MODEL_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include "base/list.h"

/* Descriptors from here on are simulated; they are never used twice. */
#define SIM_FD	  1000000
#define SIM_FDS	  8192
#define SIM_SOCKS 8
#define SIM_PIPES 32
#define SIM_SEGS  64
#define SIM_MARKS 16
#define SIM_SLOTS 16
#define SIM_PAGE  4096

struct sim_sock;
struct sim_pipe;

enum sim_kind {
	SIM_CLOSED,
	SIM_SOCK,
	SIM_PIPE_IN,
	SIM_PIPE_OUT,
	SIM_EPOLL,
	SIM_EVENT,
	SIM_TIMER,
};

/**
 * struct sim_file - what a descriptor stands for
 * @n:		of an eventfd its count, of a timerfd when it goes off
 * @events:	what epoll watches it for, 0 if it does not
 * @mask:	what poll said when last anything changed: an edge is what it
 *		gains over that
 * @ready:	in sim.ready, or in nothing
 */
struct sim_file {
	enum sim_kind kind;
	int fd;
	struct sim_sock *sock;
	struct sim_pipe *pipe;
	uint64_t n;
	uint32_t events, mask;
	void *ptr;
	struct list ready;
};

/* TCP's urg_data. */
enum sim_urgent { URG_NONE, URG_NOTYET, URG_VALID, URG_READ };

/*
 * What became of an urgent byte. TAKEN: it was read by itself after epoll had
 * told of it, so it must go on as urgent. EITHER: it need not, because a later
 * one took its mark before it was reached, or because it was read before epoll
 * had told of it. LOST: it was stepped over, and nobody will see it.
 */
enum sim_fate { FATE_AHEAD, FATE_TAKEN, FATE_EITHER, FATE_LOST };

/**
 * struct sim_mark - an urgent byte in a stream
 * @told:	epoll has said EPOLLPRI because of it
 */
struct sim_mark {
	uint64_t at;
	enum sim_fate fate;
	bool told;
};

/**
 * struct sim_sock - our end of a connection, and what its peer has seen
 * @twin:	the other socket of the relay: what is read here goes out there
 * @copied, @arrived: what the peer said lies from here to there, unread
 * @seg:	where its segments end, @segs of them from @seg_first on
 * @urg_at:	the mark, while @urg is not URG_NONE
 * @oobinline:	the urgent byte stays among the others (SO_OOBINLINE)
 * @promised:	position of an urgent byte that the peer has announced and not
 *		yet sent, 0 if none
 * @fin_in:	the peer has said FIN
 * @moved_ns:	when a byte was last read or written here, or FIN
 * @taken:	bytes that the relay has read; @turn_read: in this turn, and
 *		@turn_most: by one call
 * @sent, @acked: bytes written here, and those that the peer has
 * @out_at:	position in the twin's stream of the next byte written here
 * @by_pipe:	bytes that were written out of a pipe
 * @nospace:	a write was cut short, or poll found no room: an edge is due
 * @shut:	we have said FIN; @fin_acked: the peer has it
 * @err:	what the next call is told, positive errno
 * @closed:	TCP_CLOSE
 * @dead:	closed by a RST of the peer, or a timeout; @dead_err tells which
 * @failed:	the relay's owner has said so, though TCP does not know; @said:
 *		what the peer had said by then
 * @dead_ns:	when that was; @seen_ns: when the loop first slept after it
 * @orphan:	the relay's owner has closed it
 * @linger0:	close() is to send a RST; @rst_out: it has
 * @no_in, @no_out: splice(2) is refused here from now on
 * @broke:	a call about the relay has failed for good: it may end badly
 */
struct sim_sock {
	struct sim_file *file;
	unsigned id;
	struct sim_sock *twin;

	uint64_t copied, arrived;
	uint64_t seg[SIM_SEGS];
	unsigned seg_first, segs;
	enum sim_urgent urg;
	uint64_t urg_at;
	bool oobinline;
	struct sim_mark mark[SIM_MARKS];
	unsigned marks;
	uint64_t promised;
	bool fin_in;
	uint64_t taken;
	size_t turn_read, turn_most;
	size_t rcvbuf;

	uint64_t sent, acked, out_at, by_pipe;
	size_t sndbuf;
	bool nospace, shut, fin_acked;

	int err, dead_err;
	bool closed, dead, failed;
	uint64_t said, dead_ns, seen_ns, moved_ns;
	bool orphan, linger0, rst_out;
	bool no_in, no_out, broke;
};

/* A slot of a pipe: so many bytes of a stream. */
struct sim_slot {
	unsigned stream;
	uint64_t at;
	size_t n;
};

/**
 * struct sim_pipe - slots, oldest first
 * @ends:	descriptors that are open
 * @room:	slots it has; @size: what fcntl(2) says of it
 */
struct sim_pipe {
	unsigned ends, room, size;
	unsigned first, n;
	struct sim_slot slot[SIM_SLOTS];
	size_t bytes;
};

/* Calls that are counted, and that may fail by order. */
enum sim_call {
	CALL_SPLICE_IN,
	CALL_SPLICE_OUT,
	CALL_RECV,
	CALL_SEND,
	CALL_READ,
	CALL_PIPE,
	CALL_GROW,
	CALL_WAIT,
	CALL_TIMER,
	CALL_MEMORY,
	CALL_OTHER,
	CALLS
};

/**
 * struct sim_rules - how this kernel is today
 * @eager:	every arrival makes an edge, as Linux does it; otherwise only
 *		what changes the mask, as little as epoll(7) promises
 * @barren:	no memory and no pipe is to be had
 * @chop:	writes are cut short where nobody expects it
 * @slots:	slots a pipe; @sip: bytes that read(2) gets of one, 0 for all
 * @faults:	one call in so many fails, 0 for none
 * @fault_nth:	the n-th call that can fail does, 0 for none; @fault_kind tells
 *		with which of its errors
 * @refuse:	splice(2) may be refused for good
 * @broken:	a read or a write may fail for good, in the middle
 * @share:	bytes a lane may read in a turn
 */
struct sim_rules {
	bool eager, chop, barren, refuse, broken;
	unsigned slots, sip;
	unsigned faults, fault_nth, fault_kind;
	size_t share;
};

/**
 * struct sim_count - what was done since the turn began
 * @moved:	calls that changed something; @idle: calls that did not
 * @events:	events that epoll_wait(2) gave; @faults: calls failed by order
 */
struct sim_count {
	unsigned moved, idle, events, faults;
};

/**
 * struct sim - the kernel
 * @on:		calls are simulated; otherwise they go to the real one
 * @in_turn:	within loop_turn()
 * @midway:	called before each call of a turn: peers do not wait
 * @total:	bytes, by call, and of spills and discards
 * @fault_fired: @rules.fault_nth was reached
 * @hungry_turn: turn of the last failure for want of memory
 */
struct sim {
	bool on, in_turn;
	uint64_t now_ns;
	struct sim_rules rules;
	struct sim_count count;
	void (*midway)(void);
	uint64_t turn;

	struct sim_file file[SIM_FDS];
	unsigned files, open;
	struct sim_sock sock[SIM_SOCKS];
	unsigned socks;
	struct sim_pipe pipe[SIM_PIPES];
	struct list ready;

	uint64_t total[CALLS], discarded;
	unsigned faultable;
	bool fault_fired;
	uint64_t hungry_turn;
};

extern struct sim sim;

/* sim_epoll.c */
void sim_reset(const struct sim_rules *rules);
struct sim_file *sim_open(enum sim_kind kind);
struct sim_file *sim_file(int fd);
uint32_t sim_poll(struct sim_file *f);
void sim_wake(struct sim_file *f, uint32_t key);
void sim_settle(struct sim_file *f);
void sim_unwatch(struct sim_file *f);
int sim_epoll_ctl(int op, struct sim_file *f, const struct epoll_event *ev);
int sim_epoll_wait(struct epoll_event *ev, int max);
ssize_t sim_counter_read(struct sim_file *f, uint64_t *n);
bool sim_busy(void);
uint64_t sim_alarm(void);
void sim_advance(uint64_t ns);

/* sim_sock.c: our end */
struct sim_sock *sim_sock_new(size_t sndbuf, size_t rcvbuf);
uint32_t tcp_poll(struct sim_sock *s);
ssize_t tcp_recv(struct sim_sock *s, void *buf, size_t len, int flags);
ssize_t tcp_send(struct sim_sock *s, const void *buf, size_t len, int flags);
size_t tcp_ready(const struct sim_sock *s, size_t len);
void tcp_take(struct sim_sock *s, size_t n);
void tcp_got(struct sim_sock *s, size_t n);
int tcp_said_end(struct sim_sock *s);
ssize_t tcp_room(struct sim_sock *s, size_t len);
int tcp_shutdown(struct sim_sock *s);
int tcp_unsent(const struct sim_sock *s);
bool tcp_at_mark(const struct sim_sock *s);
void tcp_close(struct sim_sock *s);
bool tcp_is_writable(const struct sim_sock *s);
bool tcp_has_news(const struct sim_sock *s);

/* sim_peer.c: the other end */
bool peer_lives(const struct sim_sock *s);
size_t peer_window(const struct sim_sock *s);
void peer_send(struct sim_sock *s, size_t n);
void peer_urgent(struct sim_sock *s);
void peer_promise(struct sim_sock *s, size_t ahead);
void peer_fin(struct sim_sock *s);
void peer_dies(struct sim_sock *s, int err);
void peer_read(struct sim_sock *s, size_t n);
struct sim_mark *tcp_mark(struct sim_sock *s, uint64_t at);

/* sim_pipe.c */
int sim_pipe_new(int fd[2]);
void sim_pipe_close(struct sim_pipe *p);
ssize_t sim_splice_in(struct sim_sock *s, struct sim_pipe *p, size_t len);
ssize_t sim_splice_out(struct sim_pipe *p, struct sim_sock *s, size_t len);
struct sim_sock *sim_pipe_source(const struct sim_pipe *p);
ssize_t sim_pipe_read(struct sim_pipe *p, void *buf, size_t len);

/* sim_out.c: what leaves is what came */
void out_bytes(struct sim_sock *s, const void *buf, size_t n);
void out_range(struct sim_sock *s, unsigned stream, uint64_t at, size_t n);
void out_urgent(struct sim_sock *s, const void *byte);
void out_fin(struct sim_sock *s);
bool out_all(struct sim_sock *s);

/* sim_fault.c */
int sim_fault(enum sim_call call, struct sim_sock *s);

/* schedule.c */
unsigned choose(unsigned n);
void schedule_describe(void);

/* trace.c: what happened, told only when something went wrong */
void trace(const char *what, int who, long a, long b);
void trace_reset(void);
void sim_fail(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));

#endif /* MODEL_SIM_H */
