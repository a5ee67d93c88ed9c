/* SPDX-License-Identifier: MIT */
/*
 * The public header is all that is needed, in C99 and in C++ to the letter:
 * this file is compiled as both, and linked to the shared library.
 */
#include "sluice.h"

/* Every function, by a pointer of the type that the header promises. */
static int (*const p_new)(struct sluice **,
			  const struct sluice_options *) = sluice_new;
static void (*const p_free)(struct sluice *) = sluice_free;
static int (*const p_fd)(const struct sluice *) = sluice_fd;
static int (*const p_relay)(struct sluice *, int, int,
			    const struct sluice_relay_options *,
			    uint64_t *) = sluice_relay;
static int (*const p_cancel)(struct sluice *, uint64_t) = sluice_cancel;
static int (*const p_dispatch)(struct sluice *, int) = sluice_dispatch;
static int (*const p_pop)(struct sluice *, struct sluice_result *) = sluice_pop;

/* Members are only ever added at the end, so these never move. */
static int layout_is_kept(void)
{
	return offsetof(struct sluice_options, size) == 0 &&
	       offsetof(struct sluice_options, mode) == sizeof(size_t) &&
	       offsetof(struct sluice_options, pipe_size) == 2 * sizeof(size_t) &&
	       offsetof(struct sluice_options, buffer_size) ==
		       3 * sizeof(size_t) &&
	       offsetof(struct sluice_options, pipe_limit) == 4 * sizeof(size_t) &&
	       offsetof(struct sluice_relay_options, userdata) == sizeof(size_t) &&
	       offsetof(struct sluice_relay_options, timeout_ms) ==
		       2 * sizeof(size_t) &&
	       offsetof(struct sluice_result, userdata) == 8 &&
	       SLUICE_SPLICE == 0 && SLUICE_COPY == 1 && SLUICE_AUTO == 2 &&
	       SLUICE_OPEN == 0 && SLUICE_FIN == 1 && SLUICE_RESET == 2 &&
	       SLUICE_ERROR == 3 && SLUICE_ENDED == 0 && SLUICE_CANCELED == 1 &&
	       SLUICE_TIMEOUT == 2;
}

/* Return: 0, or the number of the first thing that is not so. */
int main(void)
{
	struct sluice_options options = SLUICE_OPTIONS_INIT;
	struct sluice_relay_options relay_options = SLUICE_RELAY_OPTIONS_INIT;
	struct sluice_result result;
	struct sluice *s = NULL;

	if (!layout_is_kept())
		return 1;
	if (options.size != sizeof(options) || options.mode ||
	    options.pipe_size || options.buffer_size || options.pipe_limit)
		return 2;
	if (relay_options.size != sizeof(relay_options) ||
	    relay_options.userdata || relay_options.timeout_ms)
		return 3;
	if (p_new(&s, &options) || !s)
		return 4;
	if (p_fd(s) < 0 || p_relay(s, -1, -1, &relay_options, NULL) >= 0 ||
	    p_cancel(s, 1) >= 0 || p_dispatch(s, 0) || p_pop(s, &result))
		return 5;
	p_free(s);
	p_free(NULL);
	return 0;
}
