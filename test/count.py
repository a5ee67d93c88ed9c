#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""count.py LOG PART SKIPS - count the tests in meson's testlog.json

A test program that speaks TAP counts as the tests it reports. Prints lines
"passed N", "failed N", "wrong WHAT", with what the test noted of it first, and
"skipped WHY". In CI, as root, a skip whose reason has no line in the file SKIPS
is a failure.
"""
import json
import os
import re
import sys

POINT = re.compile(r"^(not )?ok\b[ \d]*(?:- )?(.*?)(?:# *SKIP\b *(.*))?$", re.I)
NOTES = 4  # lines that say why a test failed; all of them are in meson's own log


def points(test):
    """(name, passed, why it was skipped or None) of each test in a program."""
    found, notes = [], []
    for line in test.get("stdout", "").splitlines():
        m = POINT.match(line)
        if m:
            why = "".join(f"\n  {note}" for note in notes[:NOTES]) if m.group(1) else ""
            found.append((m.group(2).strip() + why, not m.group(1), m.group(3)))
            notes = []
        elif line.startswith("#"):
            notes.append(line)
    if test["result"] == "SKIP" and not any(f[2] is not None for f in found):
        why = test.get("stdout", "").strip().splitlines() or test.get("stderr", "").strip().splitlines()
        return [(test["name"], True, why[-1] if why else "no reason given")]
    if test["result"] in ("OK", "SKIP", "EXPECTEDFAIL"):
        return found or [(test["name"], True, None)]
    # A program that died, hung or lied about its plan is one more failure.
    said = "".join(f"\n  {line}" for line in test.get("stderr", "").splitlines()[-NOTES:])
    return found + ([] if any(not f[1] for f in found) else [(f"the program itself: {test['result']}{said}", False, None)])


def main():
    log, part, listed = sys.argv[1:]
    strict = os.environ.get("CI") and os.geteuid() == 0
    with open(listed) as f:
        known = [ln.strip() for ln in f if ln.strip() and not ln.startswith("#")]
    passed = failed = 0
    with open(log) as f:
        for line in f:
            test = json.loads(line)
            for name, ok, why in points(test):
                if why is not None:
                    print(f"skipped {part}: {name}: {why}")
                    if strict and not any(k in why for k in known):
                        failed += 1
                        print(f"wrong {part}: {test['name']}: {name}: a skip that test/skips.txt does not name: {why}")
                elif ok:
                    passed += 1
                else:
                    failed += 1
                    for part_of_it in f"{part}: {test['name']}: {name}".splitlines():
                        print(f"wrong {part_of_it}")
    print(f"passed {passed}\nfailed {failed}")


main()
