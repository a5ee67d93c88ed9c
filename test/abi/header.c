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

#define AT(type, member) offsetof(struct type, member)

/* Members are only ever added at the end, so these never move. */
static int layout_is_kept(void)
{
	const size_t word = sizeof(size_t), two = 2 * sizeof(int);

	return AT(sluice_options, size) == 0 &&
	       AT(sluice_options, mode) == word &&
	       AT(sluice_options, pipe_limit) == word + sizeof(int) &&
	       AT(sluice_options, pipe_size) == word + two &&
	       AT(sluice_options, buffer_size) == 2 * word + two &&
	       AT(sluice_relay_options, size) == 0 &&
	       AT(sluice_relay_options, userdata) == word &&
	       AT(sluice_relay_options, timeout_ms) == 2 * word &&
	       AT(sluice_relay_options, reserved) == 2 * word + sizeof(int);
}

static int result_layout_is_kept(void)
{
	const size_t word = sizeof(size_t), ends = 2 * word + 8;

	return AT(sluice_result, size) == 0 &&
	       AT(sluice_result, userdata) == word &&
	       AT(sluice_result, id) == 2 * word &&
	       AT(sluice_result, why) == ends &&
	       AT(sluice_result, end) == ends + sizeof(int) &&
	       AT(sluice_result, error) == ends + 3 * sizeof(int) &&
	       AT(sluice_result, delivered) == AT(sluice_result, read) + 16 &&
	       AT(sluice_result, by_pipe) == AT(sluice_result, read) + 32;
}

static int numbers_are_kept(void)
{
	return SLUICE_MODE_SPLICE == 0 && SLUICE_MODE_COPY == 1 &&
	       SLUICE_MODE_AUTO == 2 && SLUICE_END_OPEN == 0 &&
	       SLUICE_END_FIN == 1 && SLUICE_END_RESET == 2 &&
	       SLUICE_END_ERROR == 3 && SLUICE_WHY_ENDED == 0 &&
	       SLUICE_WHY_CANCELED == 1 && SLUICE_WHY_TIMEOUT == 2;
}

/* Return: 0, or the number of the first thing that is not so. */
int main(void)
{
	struct sluice_options options = SLUICE_OPTIONS_INIT;
	struct sluice_relay_options relay_options = SLUICE_RELAY_OPTIONS_INIT;
	struct sluice_result result = SLUICE_RESULT_INIT;
	struct sluice *s = NULL;

	if (!layout_is_kept() || !result_layout_is_kept() || !numbers_are_kept())
		return 1;
	if (options.size != sizeof(options) || options.mode ||
	    options.pipe_size || options.buffer_size || options.pipe_limit)
		return 2;
	if (relay_options.size != sizeof(relay_options) ||
	    relay_options.userdata || relay_options.timeout_ms)
		return 3;
	if (result.size != sizeof(result) || result.id || result.by_pipe[1])
		return 6;
	if (p_new(&s, &options) || !s)
		return 4;
	if (p_fd(s) < 0 || p_relay(s, -1, -1, &relay_options, NULL) >= 0 ||
	    p_cancel(s, 1) >= 0 || p_dispatch(s, 0) || p_pop(s, &result))
		return 5;
	p_free(s);
	p_free(NULL);
	return 0;
}
