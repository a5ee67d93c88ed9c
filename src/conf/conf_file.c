/* SPDX-License-Identifier: MIT */
/*
 * conf_file.c - rules from a file, in rinetd's form
 *
 *	# comment
 *	bindaddr bindport connectaddr connectport
 */
#include "conf/conf_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define FIELDS 4

/* The longest rule has two names of 253 characters. */
#define LINE_ROOM 1024

static void close_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

/* Cuts a line into fields. Return: how many there were, also if too many. */
static unsigned split(char *line, char *field[static FIELDS])
{
	unsigned n = 0;
	char *save, *word = strtok_r(line, " \t\r\n", &save);

	for (; word && *word != '#'; word = strtok_r(NULL, " \t\r\n", &save)) {
		if (n < FIELDS)
			field[n] = word;
		n++;
	}
	return n;
}

/* "*" and "0.0.0.0" and "::" keep their meaning: both families, v4, v6. */
static const char *read_fields(struct rule *rule, char *field[static FIELDS],
			       const char **what)
{
	struct endpoint *listen = &rule->listen, *target = &rule->target;
	const char *why = NULL;

	*what = field[0];
	if (strcmp(field[0], "*"))
		why = parse_host(listen->host, field[0], strlen(field[0]));
	if (!why) {
		*what = field[1];
		why = parse_port(&listen->port, field[1], 0);
	}
	if (!why) {
		*what = field[2];
		why = parse_host(target->host, field[2], strlen(field[2]));
	}
	if (!why) {
		*what = field[3];
		why = parse_port(&target->port, field[3], 1);
	}
	return why;
}

static int read_rule(struct conf *conf, const char *where, char *line)
{
	char *field[FIELDS];
	unsigned n = split(line, field);
	const char *why, *what;
	struct rule *rule;

	if (!n)
		return 0;
	if (n != FIELDS) {
		log_error("%s: %u fields; a rule has four: bindaddr bindport "
			  "connectaddr connectport",
			  where, n);
		return -1;
	}
	rule = conf_add_rule(conf);
	if (!rule) {
		log_error("%s: %s", where, strerror(ENOMEM));
		return -1;
	}
	snprintf(rule->where, sizeof(rule->where), "%s: ", where);
	why = read_fields(rule, field, &what);
	if (why) {
		log_error("%s: \"%.200s\": %s", where, what, why);
		return -1;
	}
	return 0;
}

/*
 * Reads one line, without its end.
 *
 * Return: 1; 0 at the end of the file; or -1 and the reason has been logged.
 */
static int read_line(FILE *f, const char *where, char line[static LINE_ROOM])
{
	size_t n = 0;
	int c;

	while ((c = getc(f)) != EOF && c != '\n') {
		if (!c) {
			log_error("%s: a zero byte; it must be text", where);
			return -1;
		}
		if (n == LINE_ROOM - 1) {
			log_error("%s: longer than %d characters", where,
				  LINE_ROOM - 1);
			return -1;
		}
		line[n++] = (char)c;
	}
	line[n] = '\0';
	if (ferror(f)) {
		log_error("%s: %s", where, strerror(errno));
		return -1;
	}
	return n || c != EOF;
}

/* Some editors put a byte order mark in front of UTF-8 text. */
static char *skip_bom(char *line, unsigned number)
{
	static const char bom[] = "\xef\xbb\xbf";

	if (number == 1 && !strncmp(line, bom, sizeof(bom) - 1))
		line += sizeof(bom) - 1;
	return line;
}

/**
 * conf_read_file() - add the rules of a file
 *
 * Return: 0, or -1 and the reason has been logged.
 */
int conf_read_file(struct conf *conf, const char *path)
{
	cleanup(close_file) FILE *f = fopen(path, "re");
	char line[LINE_ROOM], where[240];
	unsigned number = 0, before = conf->n_rules;
	int more = 1;

	if (!f) {
		log_error("%.200s: %s", path, strerror(errno));
		return -1;
	}
	while (more > 0) {
		snprintf(where, sizeof(where), "%.200s:%u", path, ++number);
		more = read_line(f, where, line);
		if (more > 0 && read_rule(conf, where, skip_bom(line, number)))
			return -1;
	}
	if (more < 0)
		return -1;
	if (conf->n_rules == before) {
		log_error("%.200s: no rules; a rule is a line of four fields: "
			  "bindaddr bindport connectaddr connectport",
			  path);
		return -1;
	}
	return 0;
}
