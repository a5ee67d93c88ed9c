/* SPDX-License-Identifier: MIT */
/*
 * What every Check program of the project has in common.
 */
#include "support/suite.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

TCase *support_case(Suite *s, const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return tc;
}

int support_main(Suite *s)
{
	SRunner *sr = srunner_create(s);
	int failed;

	signal(SIGPIPE, SIG_IGN);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

void support_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("# ", stdout);
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
	fflush(stdout); /* a test ends by _exit, or is copied by a fork */
}

void support_skip(const char *why)
{
	support_note("SKIP %s", why);
}

void support_skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	exit(EXIT_SUCCESS);
}
