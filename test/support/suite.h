/* SPDX-License-Identifier: MIT */
/*
 * What every Check program of the project has in common.
 *
 * A program builds one suite and ends with `return support_main(s)`. Run by
 * meson (protocol : 'tap', env : {'CK_TAP_LOG_FILE_NAME' : '-',
 * 'CK_VERBOSITY' : 'silent'}) it speaks TAP; run by hand it speaks as Check
 * does. CK_FORK=no, CK_RUN_CASE and the rest of Check's environment work.
 *
 * Check cannot skip one test. The convention: a test that cannot be run here
 * says support_skip("why") and returns; it counts as passed, and the log
 * holds a line "# SKIP why". A program of which nothing can be run here calls
 * support_skip_all("why") first thing in main(), and meson shows it as
 * skipped. (Exit status 77 means nothing to meson's TAP.)
 */
#ifndef SUPPORT_SUITE_H
#define SUPPORT_SUITE_H

#include <check.h>

/* A new test case of @s whose tests may take a minute each; the thing to give to
 * tcase_add_test(). One a program is enough. */
TCase *support_case(Suite *s, const char *name);

/* Runs and frees @s, SIGPIPE ignored as in the daemon. Returns the exit status
 * of the program. */
int support_main(Suite *s);

/* Prints "# ..." for the log: what was measured, not what is asserted. */
void support_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* See above. */
void support_skip(const char *why);
void support_skip_all(const char *why) __attribute__((noreturn));

#endif
