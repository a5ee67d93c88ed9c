/* SPDX-License-Identifier: MIT */
/*
 * options.c - the options of the command line
 *
 * getopt_long(3) finds them, and option_table.c says what they are.
 */
#include "conf/options.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "conf/option_table.h"
#include "conf/usage.h"

/* Options that there may be; those of the table are fewer. */
#define OPTIONS_MAX 64

/* What getopt_long(3) returns for options without a letter. */
#define FIRST_ID 256

static int has_value(const struct option_row *row)
{
	if (row->bare)
		return row->type == OPTION_FLAG ? no_argument : optional_argument;
	return row->type == OPTION_ACTION && !row->arg ? no_argument
						       : required_argument;
}

/* The table as getopt_long(3) wants it. */
static const struct option *long_options(void)
{
	static struct option options[OPTIONS_MAX + 1];

	assert(option_count <= OPTIONS_MAX);
	for (unsigned i = 0; i < option_count; i++)
		options[i] = (struct option){ option_rows[i].name,
					      has_value(&option_rows[i]), NULL,
					      FIRST_ID + (int)i };
	return options;
}

/* The letters, too; the colon in front has it tell a missing value apart. */
static const char *short_options(void)
{
	static char letters[2 + 2 * OPTIONS_MAX];
	char *end = letters;

	*end++ = ':';
	for (unsigned i = 0; i < option_count; i++) {
		if (!option_rows[i].letter)
			continue;
		*end++ = option_rows[i].letter;
		if (has_value(&option_rows[i]) == required_argument)
			*end++ = ':';
	}
	*end = '\0';
	return letters;
}

/* What getopt_long(3) has returned. Return: NULL if it is no option. */
static const struct option_row *row_of(int id)
{
	if (id >= FIRST_ID)
		return &option_rows[id - FIRST_ID];
	for (unsigned i = 0; i < option_count; i++)
		if (option_rows[i].letter && option_rows[i].letter == id)
			return &option_rows[i];
	return NULL;
}

/* An option that begins with @name, behind @row or NULL. */
static const struct option_row *next_like(const char *name,
					  const struct option_row *row)
{
	const struct option_row *end = option_rows + option_count;

	for (row = row ? row + 1 : option_rows; row < end; row++)
		if (!strncmp(row->name, name, strlen(name)))
			return row;
	return NULL;
}

/* @word is no option, nor the beginning of one alone. */
static void unknown_option(const char *word)
{
	char name[2 * OPTION_NAME_MAX];
	size_t len = strcspn(word + 2, "=");
	const struct option_row *near, *other;

	snprintf(name, sizeof(name), "%.*s", (int)len, word + 2);
	near = next_like(name, NULL);
	other = near ? next_like(name, near) : NULL;
	if (near && other)
		log_error("--%s: ambiguous; --%s or --%s?", name, near->name,
			  other->name);
	else if (len < sizeof(name) && (near = option_nearest(name)))
		log_error("--%s: no such option; did you mean --%s?", name,
			  near->name);
	else
		log_error("%.200s: no such option; see sluice --help", word);
}

/* What getopt_long(3) does not accept. */
static enum conf_verdict bad_option(int c, char **argv)
{
	/* In a cluster, as in -xy, this is still the word before. */
	const char *word = argv[optind - 1];
	const struct option_row *row = row_of(optopt);
	char arg[OPTION_VALUE_LEN];

	if (c == ':' && row)
		log_error("--%s: value missing; write --%s=%s", row->name,
			  row->name, option_argument(row, arg));
	else if (!optopt)
		unknown_option(word);
	else if (row)
		log_error("%.200s: --%s takes no value", word, row->name);
	else
		log_error("-%c: no such option; see sluice --help", optopt);
	return CONF_USAGE;
}

static enum conf_verdict set_file(const char **file, const char *path)
{
	if (*file) {
		log_error("-c %.200s: there is one already", path);
		return CONF_USAGE;
	}
	*file = path;
	return CONF_RUN;
}

static enum conf_verdict set_value(struct conf *conf,
				   const struct option_row *row, const char *text)
{
	char why[OPTION_WHY_LEN];

	if (!option_read(row, conf, text, why))
		return CONF_RUN;
	log_error("--%s=%.200s: %s", row->name, text, why);
	return CONF_USAGE;
}

static enum conf_verdict read_one(struct conf *conf, int c, char **argv,
				  const char **file)
{
	const struct option_row *row = row_of(c);

	if (!row || c == ':' || c == '?')
		return bad_option(c, argv);
	switch (row->letter) {
	case 'h':
		usage_print();
		return CONF_DONE;
	case 'V':
		usage_print_version();
		return CONF_DONE;
	case 'c':
		return set_file(file, optarg);
	}
	return set_value(conf, row, optarg);
}

/**
 * options_read() - read the options of a command line
 * @file:	NULL, or set to what -c names, which is not read here
 *
 * Leaves optind(3) at the first word that is no option.
 *
 * Return: CONF_RUN to go on.
 */
enum conf_verdict options_read(struct conf *conf, int argc, char **argv,
			       const char **file)
{
	const struct option *options = long_options();
	const char *letters = short_options();
	enum conf_verdict verdict = CONF_RUN;
	int c;

	opterr = 0;
	while (verdict == CONF_RUN &&
	       (c = getopt_long(argc, argv, letters, options, NULL)) != -1)
		verdict = read_one(conf, c, argv, file);
	return verdict;
}
