/* SPDX-License-Identifier: MIT */
/**
 * sluice.h - relay bytes between two connected sockets, inside a program
 *
 * The program hands over two connected stream sockets. What one peer sends
 * reaches the other in order. A FIN is passed on as a FIN, after the last byte,
 * and a RST as a RST. Where splice(2) is possible the bytes do not enter user
 * space.
 *
 *	struct sluice_result result = SLUICE_RESULT_INIT;
 *	struct sluice *s;
 *
 *	sluice_new(&s, NULL);
 *	sluice_relay(s, client, server, NULL, NULL);
 *	... poll sluice_fd(s) for POLLIN beside other descriptors, then ...
 *	sluice_dispatch(s, 0);
 *	while (sluice_pop(s, &result) > 0)
 *		log_it(&result);
 *
 * Rules:
 *  - One thread at a time uses a context. Contexts share no state.
 *  - The library starts no thread, has no global state, calls no callback and
 *    writes no log. The result of a relay is kept until sluice_pop().
 *  - SIGPIPE must be ignored, or blocked in the threads that call
 *    sluice_dispatch() and sluice_free(): splice(2) has no MSG_NOSIGNAL
 *    (test/kernel/splice_out.c). The library does not change it.
 *  - A function that fails returns a negative errno, and has changed nothing
 *    unless its description says otherwise.
 *
 * Versions: the program and the library may be of different versions. Each
 * struct begins with its size in bytes, as the program was compiled; the
 * initializer SLUICE_..._INIT sets it. New members are added at the end only,
 * and a new option that is 0 changes nothing.
 *  - Options of an older program are shorter. The members that it lacks are
 *    taken as 0.
 *  - Options of a newer program are longer. They are accepted if all bytes that
 *    the library does not know are 0, and refused with -E2BIG otherwise.
 *  - In the result of an older program, the library writes size bytes and no
 *    more.
 *  - In the result of a newer program, the library sets to 0 all bytes, up to
 *    size, that it does not know.
 *  - A size below sizeof(size_t) is refused with -EINVAL, and one above 4096
 *    with -E2BIG: that struct was not initialized.
 */
#ifndef SLUICE_H
#define SLUICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A context: relays, their pipes and buffers, and results. */
struct sluice;

/* How bytes are moved. */
enum sluice_mode {
	SLUICE_MODE_SPLICE, /* through pipes; copied where that is impossible */
	SLUICE_MODE_COPY,   /* through buffers */
	SLUICE_MODE_AUTO    /* per direction, what was cheaper lately */
};

/**
 * struct sluice_options - how a context works
 * @size:	sizeof(struct sluice_options), by SLUICE_OPTIONS_INIT
 * @mode:	enum sluice_mode
 * @pipe_limit:	maximum number of pipes; default 32, or a quarter of what the
 *		user's quota allows if that is less (pipe(7),
 *		/proc/sys/fs/pipe-user-pages-soft; test/kernel/pipe_quota.c)
 * @pipe_size:	bytes to request for a pipe, 65536 to 1073741824; default
 *		1048576. The kernel may grant less, and rounds up to a power
 *		of two pages (F_SETPIPE_SZ in fcntl(2)).
 * @buffer_size: bytes of a buffer, 4096 to 16777216; default 65536
 *
 * A member that is 0 has its default.
 */
struct sluice_options {
	size_t size;
	int mode;
	unsigned pipe_limit;
	size_t pipe_size;
	size_t buffer_size;
};

#define SLUICE_OPTIONS_INIT                               \
	{                                                 \
		sizeof(struct sluice_options), 0, 0, 0, 0 \
	}

/**
 * struct sluice_relay_options - how one relay works
 * @size:	sizeof(struct sluice_relay_options), by
 *		SLUICE_RELAY_OPTIONS_INIT
 * @userdata:	returned in the result; the library does not dereference it
 * @timeout_ms:	milliseconds from now after which the relay is aborted; 0 is
 *		no limit
 * @reserved:	must be 0
 */
struct sluice_relay_options {
	size_t size;
	void *userdata;
	unsigned timeout_ms;
	unsigned reserved;
};

#define SLUICE_RELAY_OPTIONS_INIT                               \
	{                                                       \
		sizeof(struct sluice_relay_options), NULL, 0, 0 \
	}

/* How the connection of a peer ended. */
enum sluice_end {
	SLUICE_END_OPEN,  /* it was open when the relay ended */
	SLUICE_END_FIN,	  /* FIN received, and all bytes before it read */
	SLUICE_END_RESET, /* RST received */
	SLUICE_END_ERROR  /* another error; see sluice_result.error */
};

/* Why a relay ended. */
enum sluice_why {
	SLUICE_WHY_ENDED,    /* its peers ended it */
	SLUICE_WHY_CANCELED, /* sluice_cancel() was called */
	SLUICE_WHY_TIMEOUT   /* timeout_ms had passed */
};

/**
 * struct sluice_result - how a relay ended
 * @size:	sizeof(struct sluice_result), by SLUICE_RESULT_INIT; the library
 *		reads it and does not change it
 * @userdata:	as given to sluice_relay()
 * @id:		as set by sluice_relay()
 * @why:	enum sluice_why
 * @end:	enum sluice_end of each peer
 * @error:	positive errno of each connection; 0 if there was none, or it
 *		is unknown
 * @read:	bytes read from each socket, with those that were discarded
 * @delivered:	of @read, bytes that the other socket accepted
 * @by_pipe:	of @delivered, bytes that did not enter user space
 *
 * In arrays, [0] is the first socket given to sluice_relay() and [1] the second.
 *
 * If why is SLUICE_WHY_ENDED and both ends are SLUICE_END_FIN, the relay was
 * complete: read equals delivered, and both sockets were closed with a FIN.
 * Otherwise both sockets were closed with a RST.
 */
struct sluice_result {
	size_t size;
	void *userdata;
	uint64_t id;
	int why;
	int end[2];
	int error[2];
	uint64_t read[2];
	uint64_t delivered[2];
	uint64_t by_pipe[2];
};

#define SLUICE_RESULT_INIT                                                    \
	{                                                                     \
		sizeof(struct sluice_result), NULL, 0, 0, { 0, 0 }, { 0, 0 }, \
			{ 0, 0 }, { 0, 0 },                                   \
		{                                                             \
			0, 0                                                  \
		}                                                             \
	}

/**
 * sluice_new() - create a context
 * @ret:	set to the context, which the caller frees with sluice_free()
 * @options:	NULL for the defaults; not used after the call
 *
 * A context has three descriptors and one buffer, and two descriptors for each
 * pipe that it has at the time.
 *
 * Return: 0; -EINVAL if an option is out of its range; -EINVAL or -E2BIG for
 *	the size of @options; -ENOMEM; -EMFILE; -ENFILE.
 */
int sluice_new(struct sluice **ret, const struct sluice_options *options);

/**
 * sluice_free() - abort all relays of a context, and free it
 * @s:		context, or NULL
 *
 * Peers of relays that are still running receive a RST. Results that were not
 * popped are lost. It does not wait for a peer.
 */
void sluice_free(struct sluice *s);

/**
 * sluice_fd() - the descriptor to poll
 *
 * The context owns the descriptor. It stays the same until sluice_free(). It is
 * an epoll(7) descriptor, which can itself be polled (test/kernel/epoll.c):
 * poll it level-triggered, and do not read from it or add to it.
 *
 * Return: a descriptor that is readable when sluice_dispatch() has work to do.
 */
int sluice_fd(const struct sluice *s);

/**
 * sluice_relay() - relay bytes between two sockets
 * @a, @b:	connected stream sockets, TCP or UNIX domain
 * @options:	NULL for the defaults; not used after the call
 * @id:		if not NULL, set to a number that this context uses once only
 *
 * On success the library owns both sockets and closes them when the relay ends.
 * The caller should keep no duplicate of either: the connection stays open
 * until the last one is closed. On failure the caller still owns both.
 *
 * Both are made nonblocking. On TCP sockets TCP_NODELAY is set, so that no byte
 * waits for an acknowledgement, and SO_OOBINLINE, so that urgent data keeps its
 * place. These settings may remain after a failure.
 *
 * Return: 0; -EBADF, -ENOTSOCK or -EPROTOTYPE if @a or @b is not a stream
 *	socket; -EEXIST if @a equals @b or either is being relayed in this
 *	context; -EINVAL if reserved is not 0; -EINVAL or -E2BIG for the size
 *	of @options; -ENOMEM; -ENOSPC at the limit of epoll watches
 *	(/proc/sys/fs/epoll/max_user_watches in epoll(7)).
 */
int sluice_relay(struct sluice *s, int a, int b,
		 const struct sluice_relay_options *options, uint64_t *id);

/**
 * sluice_cancel() - abort a relay, with a RST to both peers
 * @id:		as set by sluice_relay()
 *
 * Bytes that are not yet delivered are lost. A sluice_dispatch() that follows
 * ends the relay; its result is then popped as usual.
 *
 * Return: 0; -ENOENT if no such relay is running.
 */
int sluice_cancel(struct sluice *s, uint64_t id);

/**
 * sluice_dispatch() - move bytes, and end relays
 * @timeout_ms:	milliseconds to wait if there is no work; 0 does not wait, -1
 *		has no limit
 *
 * One call does a bounded amount of work. sluice_fd() stays readable while more
 * is left. A signal ends the wait, and the call returns 0.
 *
 * Return: 0; a negative errno of epoll_wait(2), after which bytes may have been
 *	moved.
 */
int sluice_dispatch(struct sluice *s, int timeout_ms);

/**
 * sluice_pop() - take the oldest result
 * @result:	owned by the caller, with size set; filled in if there is one
 *
 * Results use memory until they are popped.
 *
 * Return: 1 if @result is filled in; 0 if there is no result; -EINVAL or -E2BIG
 *	for the size of @result.
 */
int sluice_pop(struct sluice *s, struct sluice_result *result);

#ifdef __cplusplus
}
#endif

#endif /* SLUICE_H */
