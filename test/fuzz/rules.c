/* SPDX-License-Identifier: MIT */
/*
 * rules.c - files of rules
 *
 * There is one rule before. A file that is read adds rules that can be used, and
 * logs nothing; one that is not logs one line that names it.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf_file.h"
#include "fuzz/fuzz.h"

#define BOM "\xef\xbb\xbf"

const char *const fuzz_words[] = {
	"127.0.0.1 0 127.0.0.1 9\n",
	"* 8080 localhost http\n",
	":: 1 [::1] 2\n",
	"# comment\n",
	" ",
	"\t",
	"\r\n",
	"\n",
	"*",
	"0.0.0.0",
	"65535",
	"65536",
	"[fe80::1%lo]",
	"example.org",
	" #",
	BOM,
	"[",
	NULL,
};

#define NAME "rules.conf"

static void check_rule(const struct rule *r)
{
	const struct endpoint *ends[] = { &r->listen, &r->target };

	promise(memchr(r->where, 0, sizeof(r->where)));
	promise(!strncmp(r->where, NAME ":", sizeof(NAME)));
	promise(atoi(r->where + sizeof(NAME)) > 0);
	for (int i = 0; i < 2; i++)
		promise(memchr(ends[i]->host, 0, sizeof(ends[i]->host)));
	promise(*r->target.host && r->target.port);
}

/* How many words stand in a line, before a comment. */
static unsigned count_words(const char *line, size_t n)
{
	unsigned words = 0;
	bool inside = false;

	for (size_t i = 0; i < n; i++) {
		bool blank = strchr(" \t\r", line[i]);

		if (!blank && !inside && line[i] == '#')
			break;
		words += !blank && !inside;
		inside = !blank;
	}
	return words;
}

/* A line that was understood has four words, or none. Return: how many have. */
static unsigned count_rules(const char *text, size_t size)
{
	unsigned rules = 0;

	if (size >= 3 && !memcmp(text, BOM, 3)) {
		text += 3;
		size -= 3;
	}
	while (size) {
		const char *end = memchr(text, '\n', size);
		size_t n = end ? (size_t)(end - text) : size;
		unsigned words = count_words(text, n);

		promise(words == 0 || words == 4);
		rules += words == 4;
		n += end != NULL;
		text += n;
		size -= n;
	}
	return rules;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf *conf = conf_new();
	int err;

	if (!conf || !conf_add_rule(conf))
		return 0;
	sandbox_begin(data, size);
	err = conf_read_file(conf, NAME);
	promise(err == 0 || err == -1);
	promise(sandbox_lines() == (err ? 1 : 0));
	promise(err || conf->n_rules > 1);
	promise(err ||
		conf->n_rules - 1 == count_rules((const char *)data, size));
	promise(!*conf->rules[0]->where);
	for (unsigned i = 1; !err && i < conf->n_rules; i++)
		check_rule(conf->rules[i]);
	conf_unref(conf);
	return 0;
}
