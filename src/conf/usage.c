/* SPDX-License-Identifier: MIT */
/*
 * usage.c - what --help and --version print.
 */
#include "conf/usage.h"

#include <stdio.h>
#include <string.h>

#include "conf/option_table.h"

/* Columns before the text on an option. */
#define MARGIN 35

/* Columns of a terminal. */
#define COLUMNS 80

static const char before[] =
	"Usage: sluice [OPTIONS] LISTEN TARGET [LISTEN TARGET ...]\n"
	"       sluice [OPTIONS] -c FILE\n"
	"\n"
	"Forwards TCP connections from LISTEN to TARGET, byte for byte, with\n"
	"splice(2), so that the bytes stay in the kernel.\n"
	"\n"
	"  LISTEN   PORT, ADDR:PORT, [V6]:PORT, *:PORT\n"
	"  TARGET   HOST:PORT, [V6]:PORT\n";

static const char after[] = "\n"
			    "Example: sluice 8080 192.0.2.1:80\n"
			    "\n"
			    "See sluice(8).\n";

/* The units, and the greatest values where an option names no others. */
static void print_units(void)
{
	char most[FORMAT_LEN];

	printf("  SIZE     bytes, or 64K, 1M, 1G; at most %s\n",
	       format_size(OPTION_SIZE_MAX, most));
	printf("  TIME     seconds, or 500ms, 10s, 5m, 1h; at most %s\n\n",
	       format_ms(OPTION_TIME_MAX, most));
}

/* Writes "-c, --config=FILE". Return: how long that is. */
static int print_name(const struct option_row *row)
{
	char arg[OPTION_VALUE_LEN];
	bool may_be_bare = row->bare && row->type != OPTION_FLAG;
	int n = row->letter ? printf("  -%c, ", row->letter) : printf("      ");

	n += printf("--%s", row->name);
	if (*option_argument(row, arg))
		n += printf(may_be_bare ? "[=%s]" : "=%s", arg);
	return n;
}

/*
 * A line: "--name=ARG  what it is, RANGE [DEFAULT]". A range that does not fit is
 * left to the error of a value out of range, and to sluice(8).
 */
static void print_option(const struct option_row *row, const struct conf *conf)
{
	char range[OPTION_VALUE_LEN], value[OPTION_VALUE_LEN];
	int n = print_name(row), pad = n + 2 < MARGIN ? MARGIN - n : 2;
	char text[COLUMNS] = "";

	if (row->type != OPTION_ACTION && row->type != OPTION_FLAG)
		snprintf(text, sizeof(text), " [%s]",
			 option_format(row, conf, value));
	option_range(row, range);
	if (*range && (size_t)(n + pad) + strlen(row->help) + strlen(", ") +
				      strlen(range) + strlen(text) <=
			      COLUMNS)
		printf("%*s%s, %s%s\n", pad, "", row->help, range, text);
	else
		printf("%*s%s%s\n", pad, "", row->help, text);
}

void usage_print(void)
{
	struct conf conf;

	option_defaults(&conf);
	fputs(before, stdout);
	print_units();
	for (unsigned i = 0; i < option_count; i++)
		print_option(&option_rows[i], &conf);
	fputs(after, stdout);
}

void usage_print_version(void)
{
	puts("sluice " SLUICE_VERSION);
}
