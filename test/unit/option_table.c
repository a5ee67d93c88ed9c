/* SPDX-License-Identifier: MIT */
/*
 * The table of options: each takes its least, its greatest and its default, is
 * printed as it is read, and refuses what is beyond without a change.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "conf/option_table.h"
#include "support/suite.h"

#define each_row(row_)                                    \
	for (const struct option_row *row_ = option_rows; \
	     row_ < option_rows + option_count; row_++)

static bool is_number(const struct option_row *row)
{
	return row->type == OPTION_COUNT || row->type == OPTION_SIZE ||
	       row->type == OPTION_TIME;
}

/* A number as a user writes it, without a larger unit. */
static const char *write_number(const struct option_row *row,
				unsigned long long n, char out[static 32])
{
	snprintf(out, 32, "%llu%s", n, row->type == OPTION_TIME ? "ms" : "");
	return out;
}

/* Whether all options have the same values. */
static bool is_same(const struct conf *a, const struct conf *b)
{
	char one[OPTION_VALUE_LEN], other[OPTION_VALUE_LEN];

	each_row(row)
	{
		if (row->type != OPTION_ACTION &&
		    strcmp(option_format(row, a, one),
			   option_format(row, b, other)) != 0)
			return false;
	}
	return true;
}

/* What is in the member itself. */
static unsigned long long stored(const struct option_row *row,
				 const struct conf *conf)
{
	const char *at = (const char *)conf + row->offset;
	uint32_t half;
	uint64_t whole;

	memcpy(&half, at, sizeof(half));
	if (row->size == sizeof(half))
		return half;
	ck_assert_uint_eq(row->size, sizeof(whole));
	memcpy(&whole, at, sizeof(whole));
	return whole;
}

static void stores(const struct option_row *row, unsigned long long n)
{
	char text[32], why[OPTION_WHY_LEN];
	struct conf conf;

	option_defaults(&conf);
	write_number(row, n, text);
	ck_assert_int_eq(option_read(row, &conf, text, why), 0);
	ck_assert_uint_eq(stored(row, &conf), n);
}

static void takes(const struct option_row *row, const char *text)
{
	char why[OPTION_WHY_LEN] = "", printed[OPTION_VALUE_LEN];
	struct conf conf, copy;

	option_defaults(&conf);
	option_defaults(&copy);
	ck_assert_msg(!option_read(row, &conf, text, why), "--%s=%s: %s",
		      row->name, text, why);
	option_format(row, &conf, printed);
	ck_assert_msg(!option_read(row, &copy, printed, why), "--%s=%s: %s",
		      row->name, printed, why);
	ck_assert_msg(is_same(&conf, &copy), "--%s: %s and %s differ",
		      row->name, text, printed);
}

static void refuses(const struct option_row *row, const char *text, int err,
		    const char *says)
{
	char why[OPTION_WHY_LEN] = "";
	struct conf conf, before;

	option_defaults(&conf);
	option_defaults(&before);
	ck_assert_msg(option_read(row, &conf, text, why) == err, "--%s=%s",
		      row->name, text);
	ck_assert_msg(strstr(why, says), "--%s=%s: %s", row->name, text, why);
	ck_assert_msg(is_same(&conf, &before), "--%s=%s has changed something",
		      row->name, text);
}

START_TEST(every_number_is_taken_from_its_least_to_its_greatest)
{
	char text[32], range[OPTION_VALUE_LEN];
	unsigned n = 0;

	each_row(row)
	{
		if (!is_number(row))
			continue;
		n++;
		ck_assert_msg(row->min < row->max, "%s", row->name);
		takes(row, write_number(row, row->min, text));
		takes(row, write_number(row, row->max, text));
		stores(row, row->min);
		stores(row, row->max);
		option_range(row, range);
		refuses(row, write_number(row, row->max + 1, text), -ERANGE,
			range);
		if (row->min)
			refuses(row, write_number(row, row->min - 1, text),
				-ERANGE, range);
		refuses(row, "99999999999999999999999", -ERANGE, "must be from ");
		refuses(row, "some", -EINVAL, "must be a");
		refuses(row, "-1", -EINVAL, "must be a");
		refuses(row, "", -EINVAL, "must be a");
	}
	ck_assert_uint_gt(n, 0);
}
END_TEST

START_TEST(every_word_is_taken_and_no_other)
{
	char choices[OPTION_VALUE_LEN];
	unsigned n = 0;

	each_row(row)
	{
		if (row->type != OPTION_ENUM)
			continue;
		option_argument(row, choices);
		for (unsigned i = 0; row->words[i]; i++, n++) {
			ck_assert_ptr_nonnull(strstr(choices, row->words[i]));
			if (!row->refuse || !row->refuse(i))
				takes(row, row->words[i]);
			else
				refuses(row, row->words[i], -EOPNOTSUPP,
					row->refuse(i));
			refuses(row, "nonsense", -EINVAL, row->words[i]);
		}
		refuses(row, "", -EINVAL, " or ");
	}
	ck_assert_uint_gt(n, 0);
}
END_TEST

START_TEST(every_grammar_takes_what_it_says)
{
	unsigned n = 0;

	each_row(row)
	{
		if (row->type != OPTION_GRAMMAR)
			continue;
		n++;
		takes(row, row->text_min);
		takes(row, row->text_max);
		takes(row, row->text_preset);
		takes(row, "off");
		refuses(row, "", -EINVAL, row->text_max);
		refuses(row, "0", -EINVAL, row->text_min);
	}
	ck_assert_uint_gt(n, 0);
}
END_TEST

START_TEST(every_text_takes_what_there_is_room_for)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
	char text[sizeof(letters)];

	each_row(row)
	{
		if (row->type != OPTION_TEXT)
			continue;
		ck_assert_uint_lt(row->max + 1, sizeof(letters));
		snprintf(text, (size_t)row->max + 1, "%s", letters);
		takes(row, "a");
		takes(row, text);
		snprintf(text, (size_t)row->max + 2, "%s", letters);
		refuses(row, text, -ERANGE, "1 to 15 characters");
		refuses(row, "", -ERANGE, "1 to 15 characters");
	}
}
END_TEST

/* What --help prints in brackets may be written, and changes nothing. */
START_TEST(every_default_reads_as_itself)
{
	each_row(row)
	{
		char value[OPTION_VALUE_LEN], why[OPTION_WHY_LEN];
		struct conf conf, read;

		if (row->type == OPTION_ACTION)
			continue;
		option_defaults(&conf);
		option_defaults(&read);
		ck_assert_str_ne(option_format(row, &conf, value), "");
		ck_assert_msg(!option_read(row, &read, value, why),
			      "--%s=%s: %s", row->name, value, why);
		ck_assert_msg(is_same(&conf, &read), "--%s=%s", row->name, value);
		if (row->zero) {
			takes(row, row->zero);
			refuses(row, row->type == OPTION_TEXT ? "" : "0",
				-ERANGE, row->zero);
		}
	}
}
END_TEST

START_TEST(values_are_printed_with_their_greatest_unit)
{
	static const struct {
		const char *name, *text, *printed;
	} cases[] = {
		{ "pipe-size", "65536", "64K" },
		{ "pipe-size", "1024K", "1M" },
		{ "pipe-size", "65537", "65537" },
		{ "discard", "0", "0" },
		{ "discard", "1025M", "1025M" },
		{ "linger", "0h", "0" },
		{ "linger", "90", "90s" },
		{ "linger", "120", "2m" },
		{ "linger", "1500ms", "1500ms" },
		{ "idle-timeout", "60m", "1h" },
		{ "idle-timeout", "off", "off" },
		{ "keepalive", "60:1h:4", "1m:1h:4" },
		{ "keepalive", "off", "off" },
		{ "busy-poll", "50", "50" },
		{ "busy-poll", "auto", "auto" },
		{ "workers", "auto", "auto" },
		{ "congestion", "bbr", "bbr" },
		{ "mode", "copy", "copy" },
	};

	for (unsigned i = 0; i < array_size(cases); i++) {
		char value[OPTION_VALUE_LEN], why[OPTION_WHY_LEN];
		const struct option_row *row =
			option_find(cases[i].name, OPTION_PROCESS);
		struct conf conf;

		ck_assert_ptr_nonnull(row);
		option_defaults(&conf);
		ck_assert_int_eq(option_read(row, &conf, cases[i].text, why), 0);
		ck_assert_str_eq(option_format(row, &conf, value),
				 cases[i].printed);
	}
}
END_TEST

START_TEST(a_flag_is_on_by_itself)
{
	static const struct option_row flag = {
		"flag",
		.type = OPTION_FLAG,
		.offset = offsetof(struct conf, own_pipes),
		.size = sizeof(bool),
		.bare = "on",
	};
	char value[OPTION_VALUE_LEN], why[OPTION_WHY_LEN];
	struct conf conf;

	option_defaults(&conf);
	ck_assert_str_eq(option_argument(&flag, value), "");
	ck_assert_str_eq(option_format(&flag, &conf, value), "off");
	ck_assert_int_eq(option_read(&flag, &conf, NULL, why), 0);
	ck_assert(conf.own_pipes);
	ck_assert_str_eq(option_format(&flag, &conf, value), "on");
	ck_assert_int_eq(option_read(&flag, &conf, "off", why), 0);
	ck_assert(!conf.own_pipes);
	refuses(&flag, "yes", -EINVAL, "must be off or on");
}
END_TEST

START_TEST(names_differ_and_are_found)
{
	each_row(row)
	{
		ck_assert_uint_le(strlen(row->name), OPTION_NAME_MAX);
		ck_assert_ptr_eq(option_find(row->name, OPTION_PROCESS), row);
		ck_assert_ptr_eq(option_find(row->name, OPTION_RULE),
				 row->scope == OPTION_RULE ? row : NULL);
		ck_assert_ptr_eq(option_nearest(row->name), row);
	}
	ck_assert_ptr_null(option_find("idle", OPTION_PROCESS));
	ck_assert_ptr_null(option_find("workers", OPTION_RULE));
}
END_TEST

START_TEST(a_misspelt_name_is_near_the_right_one)
{
	static const char *const pairs[][2] = {
		{ "idle-timout", "idle-timeout" },
		{ "worker", "workers" },
		{ "log_level", "log-level" },
		{ "keep-alive", "keepalive" },
		{ "buffersize", "buffer-size" },
		{ "halfclose-timeout", "half-close-timeout" },
	};

	for (unsigned i = 0; i < array_size(pairs); i++) {
		const struct option_row *row = option_nearest(pairs[i][0]);

		ck_assert_ptr_nonnull(row);
		ck_assert_str_eq(row->name, pairs[i][1]);
	}
	ck_assert_ptr_null(option_nearest("nonsense"));
	ck_assert_ptr_null(option_nearest("x"));
	ck_assert_ptr_null(
		option_nearest("idle-timeout-idle-timeout-idle-timeout"
			       "-idle-timeout"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("option-table");
	TCase *tc = support_case(s, "option-table");

	tcase_add_test(tc, every_number_is_taken_from_its_least_to_its_greatest);
	tcase_add_test(tc, every_word_is_taken_and_no_other);
	tcase_add_test(tc, every_grammar_takes_what_it_says);
	tcase_add_test(tc, every_text_takes_what_there_is_room_for);
	tcase_add_test(tc, every_default_reads_as_itself);
	tcase_add_test(tc, values_are_printed_with_their_greatest_unit);
	tcase_add_test(tc, a_flag_is_on_by_itself);
	tcase_add_test(tc, names_differ_and_are_found);
	tcase_add_test(tc, a_misspelt_name_is_near_the_right_one);
	return support_main(s);
}
