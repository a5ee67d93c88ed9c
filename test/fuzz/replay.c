/* SPDX-License-Identifier: MIT */
/*
 * replay.c - runs a harness without libFuzzer, for the ordinary tests
 *
 *	replay CORPUS [FILE...]
 *
 * Every file of the folder CORPUS is an input, and so are FUZZ_ROUNDS inputs
 * that are made out of them by dice, with the seed FUZZ_SEED: the same seed,
 * the same inputs. If one of them ends the program, its bytes are printed, to be
 * made a file of the corpus. With FILEs, only those are run.
 *
 * What finds more is libFuzzer, which watches the branches that are taken:
 * fuzz.sh builds a harness with clang and runs it for as long as one likes.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "fuzz/mutate.h"

#define MOST_FILES 256
#define SECONDS	   4 /* and then no more inputs are made, however few there were */

static struct input corpus[MOST_FILES], now;
static unsigned n_corpus;

/* In a signal handler, or when a sanitizer gives up: nothing but write(2). */
static void print_input(void)
{
	static const char hex[] = "0123456789abcdef";
	char row[3 * INPUT_MOST + 20] = "# the input: ";
	size_t n = strlen(row);

	for (size_t i = 0; i < now.size; i++) {
		row[n++] = hex[now.data[i] >> 4];
		row[n++] = hex[now.data[i] & 15];
	}
	row[n++] = '\n';
	(void)!write(STDOUT_FILENO, row, n);
}

static void died(int signal_number)
{
	print_input();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

static void print_on_death(void)
{
	static const int deaths[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };

	if (__sanitizer_set_death_callback) {
		__sanitizer_set_death_callback(print_input);
		signal(SIGABRT, died);
		return;
	}
	for (size_t i = 0; i < sizeof(deaths) / sizeof(*deaths); i++)
		signal(deaths[i], died);
}

/* Return: whether it could be read, and is not too long. */
static bool read_input(struct input *in, int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, in->data, sizeof(in->data));

	if (fd >= 0)
		close(fd);
	in->size = n < 0 ? 0 : (size_t)n;
	return n >= 0 && n < INPUT_MOST;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int no_dots(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* In the order of their names, or the same seed would not be the same inputs. */
static void read_corpus(const char *path)
{
	struct dirent **names;
	int n = scandir(path, &names, no_dots, by_name);
	int at = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (n <= 0 || n > MOST_FILES || at < 0) {
		printf("Bail out! %s: no corpus, or too large\n", path);
		exit(EXIT_FAILURE);
	}
	for (int i = 0; i < n; i++) {
		if (!read_input(&corpus[n_corpus++], at, names[i]->d_name)) {
			printf("Bail out! %s cannot be read\n", names[i]->d_name);
			exit(EXIT_FAILURE);
		}
		free(names[i]);
	}
	free(names);
	close(at);
}

static void run(void)
{
	/* From memory of just that size: reading behind it is seen by ASan. */
	uint8_t *data = malloc(now.size + !now.size);

	if (!data)
		abort();
	memcpy(data, now.data, now.size);
	LLVMFuzzerTestOneInput(data, now.size);
	free(data);
}

static unsigned long number(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

/* Return: how many it was time for. */
static unsigned long run_mutations(unsigned long most, uint64_t seed)
{
	uint64_t state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
	time_t until = time(NULL) + SECONDS;
	unsigned long n;

	for (n = 0; n < most && (n % 64 || time(NULL) < until); n++) {
		now = corpus[dice_throw(&state, n_corpus)];
		mutate(&now, &corpus[dice_throw(&state, n_corpus)], fuzz_words,
		       &state);
		run();
	}
	return n;
}

static int run_files(int n, char **names)
{
	for (int i = 0; i < n; i++) {
		if (!read_input(&now, AT_FDCWD, names[i])) {
			printf("%s cannot be read\n", names[i]);
			return EXIT_FAILURE;
		}
		run();
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	unsigned long rounds = number("FUZZ_ROUNDS", 100000);
	unsigned long seed = number("FUZZ_SEED", 1);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2) {
		printf("usage: %s CORPUS [FILE...]\n", argv[0]);
		return EXIT_FAILURE;
	}
	print_on_death();
	if (argc > 2)
		return run_files(argc - 2, argv + 2);
	printf("1..2\n");
	read_corpus(argv[1]);
	for (unsigned i = 0; i < n_corpus; i++) {
		now = corpus[i];
		run();
	}
	printf("ok 1 - %u inputs of the corpus do no harm\n", n_corpus);
	rounds = run_mutations(rounds, seed);
	printf("# %lu inputs, seed %lu\n", rounds, seed);
	printf("ok 2 - inputs made out of them by dice do no harm\n");
	return EXIT_SUCCESS;
}
