/* SPDX-License-Identifier: MIT */
/*
 * option_table.h - every option of the program, a row each
 *
 * A row says what an option is called, where its value is stored, which values
 * it takes and what it is without one. Everything else is derived from the rows:
 * how a value is read and printed, what is said of a wrong one, --help, and what
 * a lint compares with sluice(8).
 */
#ifndef CONF_OPTION_TABLE_H
#define CONF_OPTION_TABLE_H

#include <stdbool.h>

#include "conf/conf.h"

/* Milliseconds: the greatest time, which is 24 days. */
#define OPTION_TIME_MAX (576u * 3600 * 1000)

/* Bytes: the greatest size where nothing else limits it. */
#define OPTION_SIZE_MAX (1ull << 40)

/* Letters of a name. */
#define OPTION_NAME_MAX 20

/* Room for a value as it is printed, for "1 to 1024", and for an argument. */
#define OPTION_VALUE_LEN 64

/* Room for what is wrong with a value. */
#define OPTION_WHY_LEN 192

enum option_type {
	OPTION_ACTION,	/* stored nowhere: options.c does it */
	OPTION_FLAG,	/* bool; given without a value, or with on or off */
	OPTION_ENUM,	/* one of words, by its place in the list */
	OPTION_COUNT,	/* a whole number */
	OPTION_SIZE,	/* bytes, 64K */
	OPTION_TIME,	/* milliseconds, 500ms */
	OPTION_TEXT,	/* an array of characters */
	OPTION_GRAMMAR, /* has functions of its own */
	OPTION_TYPES,
};

/* What an option may be given for. */
enum option_scope {
	OPTION_PROCESS, /* the process alone */
	OPTION_RULE,	/* each rule, too */
};

/**
 * struct option_grammar - of a value that is more than one number or word
 * @read:	return 0, or -EINVAL and nothing has changed
 * @format:	writes a value that @read reads
 */
struct option_grammar {
	int (*read)(struct conf *conf, const char *text);
	void (*format)(const struct conf *conf,
		       char buf[static OPTION_VALUE_LEN]);
};

/**
 * struct option_row - one option
 * @name:	without the dashes; @letter: its short name, or 0
 * @arg:	what --help calls the value; NULL for what its type is called
 * @offset:	of the value in struct conf; @size: of that member
 * @min, @max:	of a number, and of the length of a text
 * @preset:	the default, of a number
 * @zero:	a word for 0 and for the empty text, which may be out of range
 * @words:	of OPTION_ENUM, up to NULL
 * @bare:	the value of the option alone; NULL if it must have one
 * @text_min, @text_max, @text_preset: of OPTION_GRAMMAR, as they are written
 * @refuse:	NULL, or returns why a number within the range is refused, or NULL
 * @help:	a noun phrase or an imperative that fits on its line of --help
 */
struct option_row {
	const char *name;
	char letter;
	const char *arg;
	enum option_type type;
	enum option_scope scope;
	unsigned short offset, size;
	unsigned long long min, max, preset;
	const char *zero;
	const char *const *words;
	const char *bare;
	const char *text_min, *text_max, *text_preset;
	const struct option_grammar *grammar;
	const char *(*refuse)(unsigned long long n);
	const char *help;
};

extern const struct option_row option_rows[];
extern const unsigned option_count;

void option_defaults(struct conf *conf);
const struct option_row *option_find(const char *name, enum option_scope scope);
const struct option_row *option_nearest(const char *name);

/* option_value.c */
void option_preset(const struct option_row *row, struct conf *conf);
int option_read(const struct option_row *row, struct conf *conf,
		const char *text, char why[static OPTION_WHY_LEN]);
char *option_format(const struct option_row *row, const struct conf *conf,
		    char buf[static OPTION_VALUE_LEN]);
char *option_argument(const struct option_row *row,
		      char buf[static OPTION_VALUE_LEN]);
char *option_range(const struct option_row *row,
		   char buf[static OPTION_VALUE_LEN]);

/* option_grammar.c */
extern const struct option_grammar option_keepalive, option_busy_poll;

#endif /* CONF_OPTION_TABLE_H */
