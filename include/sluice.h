/* SPDX-License-Identifier: MIT */
/**
 * sluice.h - relay two connected sockets, inside your program
 *
 * Hand over two stream sockets; what either peer sends reaches the other, in
 * order, with its end as what it was: FIN as FIN, RST as RST. The bytes stay
 * in the kernel where it lets them.
 *
 *	struct sluice *s;
 *
 *	sluice_new(&s, NULL);
 *	sluice_relay(s, client, server, NULL, NULL);
 *	... poll sluice_fd(s) for POLLIN beside your own descriptors, then ...
 *	sluice_dispatch(s, 0);
 *	while (sluice_pop(s, &result))
 *		log_it(&result);
 *
 * Rules, all of them:
 *  - A context belongs to one thread at a time. Two contexts share nothing.
 *  - The library makes no thread, keeps no global state, calls nothing back,
 *    logs nothing. What has ended waits to be popped.
 *  - SIGPIPE must be ignored or blocked: splice(2) has no MSG_NOSIGNAL.
 *  - Functions that can fail return a negative errno value, and then nothing
 *    has changed.
 */
#ifndef SLUICE_H
#define SLUICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice;

enum sluice_mode {
	SLUICE_SPLICE, /* through pipes, where the kernel lets us */
	SLUICE_COPY,   /* through buffers */
	SLUICE_AUTO    /* each direction as its recent past says is cheaper */
};

/**
 * struct sluice_options - how a context works
 * @size:	sizeof(struct sluice_options); set by SLUICE_OPTIONS_INIT
 * @mode:	enum sluice_mode
 * @pipe_size:	wished-for bytes a pipe, 65536 to 1073741824; default 1 MiB
 * @buffer_size: bytes a buffer, 4096 to 16777216; default 65536
 * @pipe_limit:	how many pipes at most; default 32, or a quarter of what the
 *		user's quota allows if that is less
 *
 * Members are only ever added, at the end, and 0 always means the default.
 */
struct sluice_options {
	size_t size;
	int mode;
	size_t pipe_size;
	size_t buffer_size;
	unsigned pipe_limit;
};

#define SLUICE_OPTIONS_INIT                               \
	{                                                 \
		sizeof(struct sluice_options), 0, 0, 0, 0 \
	}

/**
 * struct sluice_relay_options - how one relay works
 * @size:	sizeof(struct sluice_relay_options)
 * @userdata:	yours, returned in the result
 * @timeout_ms:	milliseconds after which it is cut off; 0 means never
 */
struct sluice_relay_options {
	size_t size;
	void *userdata;
	unsigned timeout_ms;
};

#define SLUICE_RELAY_OPTIONS_INIT                            \
	{                                                    \
		sizeof(struct sluice_relay_options), NULL, 0 \
	}

/* How a peer ended. */
enum sluice_end {
	SLUICE_OPEN,  /* it had not, when the relay was over */
	SLUICE_FIN,   /* it said all that it had to say */
	SLUICE_RESET, /* it aborted */
	SLUICE_ERROR  /* its connection failed; see error */
};

/* Why a relay was over. */
enum sluice_why {
	SLUICE_ENDED,	 /* because of its peers */
	SLUICE_CANCELED, /* by sluice_cancel() */
	SLUICE_TIMEOUT	 /* timeout_ms had passed */
};

/**
 * struct sluice_result - how a relay went
 * @id:		as set by sluice_relay()
 * @userdata:	as given to sluice_relay()
 * @why:	enum sluice_why
 * @end:	enum sluice_end of the first socket's peer, and the second's
 * @error:	positive errno of each, 0 if there was none
 * @read:	bytes read from each
 * @delivered:	of those, how many the other's kernel took
 * @by_pipe:	of those, how many stayed in the kernel
 *
 * All went well if why is SLUICE_ENDED and both ends are SLUICE_FIN; then read
 * equals delivered. In every other case both sockets were closed with a RST.
 */
struct sluice_result {
	uint64_t id;
	void *userdata;
	int why;
	int end[2];
	int error[2];
	uint64_t read[2];
	uint64_t delivered[2];
	uint64_t by_pipe[2];
};

/**
 * sluice_new() - make a context
 * @ret:	where to put it; free it with sluice_free()
 * @options:	or NULL for the defaults
 *
 * Return: 0; -EINVAL, -E2BIG for options it does not know; -ENOMEM, -EMFILE,
 *	-ENFILE.
 */
int sluice_new(struct sluice **ret, const struct sluice_options *options);

/**
 * sluice_free() - end everything in a context, and the context
 * @s:		context, or NULL
 *
 * Relays still running are cut off, with a RST to both their peers; results
 * that were not popped are lost.
 */
void sluice_free(struct sluice *s);

/**
 * sluice_fd() - what to poll
 *
 * Return: a descriptor, the context's own, that is readable when
 *	sluice_dispatch() has something to do.
 */
int sluice_fd(const struct sluice *s);

/**
 * sluice_relay() - relay two sockets to each other
 * @a, @b:	connected stream sockets, meant to be TCP; made nonblocking,
 *		with TCP_NODELAY and SO_OOBINLINE set
 * @options:	or NULL for the defaults
 * @id:		set to a number that is never used again, or NULL
 *
 * On success the library owns both sockets and closes them at the end. On
 * failure both are still the caller's, though perhaps with those set.
 *
 * Return: 0; -EBADF, -ENOTSOCK, -EPROTOTYPE for what is no stream socket;
 *	-EEXIST for one that is relayed already; -E2BIG for options it does
 *	not know; -ENOMEM, -ENOSPC.
 */
int sluice_relay(struct sluice *s, int a, int b,
		 const struct sluice_relay_options *options, uint64_t *id);

/**
 * sluice_cancel() - cut a relay off, with a RST to both peers
 *
 * Its result follows, out of one of the next sluice_dispatch().
 *
 * Return: 0, or -ENOENT if it is over.
 */
int sluice_cancel(struct sluice *s, uint64_t id);

/**
 * sluice_dispatch() - move what can be moved
 * @timeout_ms:	how long to wait for something to do: 0 not at all, -1 for ever
 *
 * Return: 0, or a negative errno of epoll_wait(2).
 */
int sluice_dispatch(struct sluice *s, int timeout_ms);

/**
 * sluice_pop() - learn of a relay that is over
 * @result:	filled in if there was one
 *
 * Return: 1 if there was one, 0 if not.
 */
int sluice_pop(struct sluice *s, struct sluice_result *result);

#ifdef __cplusplus
}
#endif

#endif /* SLUICE_H */
