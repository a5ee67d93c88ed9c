/* SPDX-License-Identifier: MIT */
/*
 * option_value.c - reads and prints the value of one option
 *
 * A word of a list is the number of its place, and a flag is one of two words: so
 * all values are numbers, stored in the type of their member, but for texts and
 * for those with a grammar of their own.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "conf/option_table.h"

static const char *const switch_words[] = { "off", "on", NULL };

/* What a value of a type is called in --help and in messages. */
static const struct {
	const char *arg, *noun;
} types[] = {
	[OPTION_ACTION] = { "", "" },
	[OPTION_FLAG] = { "", "" },
	[OPTION_ENUM] = { "", "" },
	[OPTION_COUNT] = { "N", "a whole number" },
	[OPTION_SIZE] = { "SIZE", "a size, as in 65536, 64K or 1M," },
	[OPTION_TIME] = { "TIME", "a time, as in 500ms, 10s, 5m or 1h," },
	[OPTION_TEXT] = { "NAME", "a name" },
	[OPTION_GRAMMAR] = { "", "" },
};
static_assert(array_size(types) == OPTION_TYPES, "one for each type");

static const char *const *words_of(const struct option_row *row)
{
	return row->type == OPTION_FLAG ? switch_words : row->words;
}

static void *member(const struct option_row *row, struct conf *conf)
{
	return (char *)conf + row->offset;
}

static void store(const struct option_row *row, struct conf *conf,
		  unsigned long long n)
{
	void *to = member(row, conf);

	switch (row->size) {
	case sizeof(bool):
		*(bool *)to = n;
		break;
	case sizeof(uint32_t): /* an int or an enum, too */
		*(uint32_t *)to = (uint32_t)n;
		break;
	default:
		assert(row->size == sizeof(uint64_t));
		*(uint64_t *)to = n;
	}
}

static unsigned long long load(const struct option_row *row,
			       const struct conf *conf)
{
	const void *from = (const char *)conf + row->offset;

	switch (row->size) {
	case sizeof(bool):
		return *(const bool *)from;
	case sizeof(uint32_t):
		return *(const uint32_t *)from;
	default:
		return *(const uint64_t *)from;
	}
}

/* The greatest number of a row. */
static unsigned long long max_of(const struct option_row *row)
{
	const char *const *words = words_of(row);
	unsigned long long n = 0;

	if (!words)
		return row->max;
	while (words[n + 1])
		n++;
	return n;
}

static int read_word(unsigned long long *ret, const char *const *words,
		     const char *text)
{
	for (unsigned i = 0; words[i]; i++)
		if (!strcmp(text, words[i])) {
			*ret = i;
			return 0;
		}
	return -EINVAL;
}

/* Return: 0, -EINVAL if that is no value of this type, or -ERANGE. */
static int read_any(const struct option_row *row, const char *text,
		    unsigned long long *ret)
{
	unsigned n = 0;
	size_t size = 0;
	int err;

	switch (row->type) {
	case OPTION_COUNT:
		err = parse_count(&n, text);
		*ret = n;
		return err;
	case OPTION_TIME:
		err = parse_ms(&n, text);
		*ret = n;
		return err;
	case OPTION_SIZE:
		err = parse_size(&size, text);
		*ret = size;
		return err;
	default:
		return read_word(ret, words_of(row), text);
	}
}

static int read_number(const struct option_row *row, struct conf *conf,
		       const char *text, char why[static OPTION_WHY_LEN])
{
	unsigned long long n = 0;
	const char *refused;
	int err;

	if (row->zero && !strcmp(text, row->zero)) {
		store(row, conf, 0);
		return 0;
	}
	err = read_any(row, text, &n);
	if (err)
		return err;
	if (n < row->min || n > max_of(row))
		return -ERANGE;
	refused = row->refuse ? row->refuse(n) : NULL;
	if (refused) {
		snprintf(why, OPTION_WHY_LEN, "%s", refused);
		return -EOPNOTSUPP;
	}
	store(row, conf, n);
	return 0;
}

static int read_text(const struct option_row *row, struct conf *conf,
		     const char *text)
{
	size_t len = strlen(text);

	assert(row->max < row->size);
	if (row->zero && !strcmp(text, row->zero))
		len = 0;
	else if (len < row->min || len > row->max)
		return -ERANGE;
	memset(member(row, conf), 0, row->size);
	memcpy(member(row, conf), text, len);
	return 0;
}

static void format_number(const struct option_row *row, unsigned long long n,
			  char out[static OPTION_VALUE_LEN])
{
	const char *const *words = words_of(row);

	if (words)
		snprintf(out, OPTION_VALUE_LEN, "%s", words[n]);
	else if (row->type == OPTION_SIZE)
		format_size((size_t)n, out);
	else if (row->type == OPTION_TIME)
		format_ms((unsigned)n, out);
	else
		snprintf(out, OPTION_VALUE_LEN, "%llu", n);
}

/* Writes "64K to 1G". */
static void format_range(const struct option_row *row,
			 char out[static OPTION_VALUE_LEN])
{
	char min[OPTION_VALUE_LEN], max[OPTION_VALUE_LEN];

	if (row->type == OPTION_GRAMMAR) {
		snprintf(out, OPTION_VALUE_LEN, "%s to %s", row->text_min,
			 row->text_max);
		return;
	}
	format_number(row, row->min, min);
	format_number(row, row->max, max);
	snprintf(out, OPTION_VALUE_LEN, "%.28s to %.28s", min, max);
}

/* Writes all that a value may be, as in "TIME|off". */
static void format_choices(const struct option_row *row,
			   char out[static OPTION_VALUE_LEN])
{
	const char *const *words = row->arg ? NULL : words_of(row);
	int len = snprintf(out, OPTION_VALUE_LEN, "%s",
			   row->arg ? row->arg : types[row->type].arg);

	for (unsigned i = 0; words && words[i]; i++)
		len += snprintf(out + len, OPTION_VALUE_LEN - (size_t)len,
				"%s%s", i ? "|" : "", words[i]);
	if (row->zero)
		len += snprintf(out + len, OPTION_VALUE_LEN - (size_t)len,
				"|%s", row->zero);
	assert(len < OPTION_VALUE_LEN);
}

/* Writes "a|b|c" as "a, b or c". */
static void format_list(const char *choices, char out[static OPTION_WHY_LEN])
{
	const char *last = strrchr(choices, '|');
	size_t len = 0;

	for (const char *c = choices; *c; c++) {
		const char *between = c == last ? " or " : ", ";

		if (*c != '|') {
			out[len++] = *c;
			continue;
		}
		memcpy(out + len, between, strlen(between));
		len += strlen(between);
	}
	out[len] = '\0';
}

/* Says what would be right where read_*() returned @err. */
static void explain(const struct option_row *row, int err,
		    char why[static OPTION_WHY_LEN])
{
	char range[OPTION_VALUE_LEN] = "", choices[OPTION_VALUE_LEN];
	char list[OPTION_WHY_LEN];

	format_choices(row, choices);
	format_list(choices, list);
	if (words_of(row)) {
		snprintf(why, OPTION_WHY_LEN, "must be %.150s", list);
		return;
	}
	format_range(row, range);
	if (row->type == OPTION_GRAMMAR)
		snprintf(why, OPTION_WHY_LEN, "must be %.100s, from %s", list,
			 range);
	else if (row->type == OPTION_TEXT)
		snprintf(why, OPTION_WHY_LEN, "must be %s of %s characters",
			 types[row->type].noun, range);
	else if (err == -EINVAL)
		snprintf(why, OPTION_WHY_LEN, "must be %s from %s",
			 types[row->type].noun, range);
	else
		snprintf(why, OPTION_WHY_LEN, "must be from %s", range);
	if (row->zero)
		snprintf(why + strlen(why), OPTION_WHY_LEN - strlen(why),
			 ", or %s", row->zero);
}

/**
 * option_read() - read the value of an option
 * @text:	NULL where it was given without one, which needs row->bare
 * @why:	on failure, what would be right
 *
 * Return: 0; -EINVAL for what is no value of that type, -ERANGE, or -EOPNOTSUPP
 *	for one that this build does not have. Then @conf has not changed.
 */
int option_read(const struct option_row *row, struct conf *conf,
		const char *text, char why[static OPTION_WHY_LEN])
{
	int err;

	assert(row->type != OPTION_ACTION);
	if (!text)
		text = row->bare ? row->bare : "";
	if (row->type == OPTION_GRAMMAR)
		err = row->grammar->read(conf, text);
	else if (row->type == OPTION_TEXT)
		err = read_text(row, conf, text);
	else
		err = read_number(row, conf, text, why);
	if (err && err != -EOPNOTSUPP)
		explain(row, err, why);
	return err;
}

/* Stores the default. */
void option_preset(const struct option_row *row, struct conf *conf)
{
	int err = 0;

	if (row->type == OPTION_GRAMMAR)
		err = row->grammar->read(conf, row->text_preset);
	else if (row->type != OPTION_ACTION && row->type != OPTION_TEXT)
		store(row, conf, row->preset);
	assert(!err);
	(void)err;
}

/* Writes a value as option_read() reads it. Return: @buf. */
char *option_format(const struct option_row *row, const struct conf *conf,
		    char buf[static OPTION_VALUE_LEN])
{
	const char *text = (const char *)conf + row->offset;
	unsigned long long n;

	assert(row->type != OPTION_ACTION);
	if (row->type == OPTION_GRAMMAR) {
		row->grammar->format(conf, buf);
		return buf;
	}
	n = row->type == OPTION_TEXT ? (unsigned char)*text : load(row, conf);
	if (!n && row->zero)
		snprintf(buf, OPTION_VALUE_LEN, "%s", row->zero);
	else if (row->type == OPTION_TEXT)
		snprintf(buf, OPTION_VALUE_LEN, "%s", text);
	else
		format_number(row, n, buf);
	return buf;
}

/* Writes what --help calls the value, "" where there is none. Return: @buf. */
char *option_argument(const struct option_row *row,
		      char buf[static OPTION_VALUE_LEN])
{
	if (row->type == OPTION_FLAG)
		*buf = '\0';
	else
		format_choices(row, buf);
	return buf;
}

/* Whether something else than its type limits it, but for a word for 0. */
static bool has_range(const struct option_row *row)
{
	switch (row->type) {
	case OPTION_COUNT:
	case OPTION_GRAMMAR:
		return true;
	case OPTION_SIZE:
		return row->min > 1 || row->max != OPTION_SIZE_MAX;
	case OPTION_TIME:
		return row->min > 1 || row->max != OPTION_TIME_MAX;
	default:
		return false;
	}
}

/* Writes the range as in "1 to 1024", "" where only the type limits it. Return:
 * @buf. */
char *option_range(const struct option_row *row,
		   char buf[static OPTION_VALUE_LEN])
{
	*buf = '\0';
	if (has_range(row))
		format_range(row, buf);
	return buf;
}
