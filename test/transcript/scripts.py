# SPDX-License-Identifier: MIT
"""Scripts written by hand: how connections go, one a line. See script.py."""

ORDERLY = """
a say 100, b hear 100, b say 100, a hear 100, a close, b hear all, b close
a say 100, b hear 100, b say 100, a hear 100, b close, a hear all, a close
a fin, b hear all, b say 5000, b fin, a hear all, a close, b close
b fin, a hear all, a say 5000, a fin, b hear all, b close, a close
a fin, b fin, a hear all, b hear all, a close, b close
a fin, b fin, b close, a close
a fin, b hear all, b close, a hear all, a close
a close, b hear all, b close
a close, b close
a say 1, b hear 1, b say 1, a hear 1, a fin, b hear all, b say 1, a hear 1, b fin, a hear all
a say 20000, a fin, b hear all, b say 20000, b close, a hear all, a close
b say 10, a hear 10, b fin, a hear all, a say 10, b hear 10, a say 20, b hear 20, a close, b hear all
a say 30000, a close, b hear all, b close
b say 30000, a fin, b hear all, b close, a hear all
a fin, wait, b say 10, a hear 10, wait, b say 10, a hear 10, b close, a hear all
a say 10, b say 10, a fin, b fin, a hear all, b hear all, a close, b close
a say 10, a fin, b say 10, b hear all, b fin, a hear all
a say 1000, b hear 10, b hear 20, b hear 970, a say 5, b hear 1, a fin, b hear all, b close, a hear all
a say 100, wait, a say 100, b hear 200, b say 1, a hear 1, a say 100, b hear 100, a close, b hear all
a say 100, b fin, a hear all, b hear 100, a say 100, b hear 100, a fin, b hear all
a fin, b hear all, a hear 0, b say 3, b say 4, b say 5, a hear 12, b fin, a hear all
a fin, b say 100, a hear 100, b hear all, b say 100, b fin, a hear all, a hear all
a say 100, b say 200, b fin, a fin, a hear all, b hear all
a say 7, a say 7, a say 7, b hear 21, b say 7, b say 7, b fin, a hear 7, a hear all, a fin, b hear all
b close, a fin, a hear all, a close
a fin, b fin, a fin, b hear all, a hear all
""".strip().splitlines()

RESETS = """
a reset, b hear all, b close
a say 100, b hear 100, a reset, b hear all
a say 100, a reset, b hear all, b hear all
a say 100, b say 100, a reset, b hear all
a say 20000, b hear 1, a reset, b hear all
a fin, b hear all, a reset, b hear all, b close
a fin, b reset, a hear all
a fin, b hear all, b reset, a hear all
a fin, b hear all, b say 100, b reset, a hear all
a fin, b say 100, a reset, b hear all
a say 100, a fin, a reset, b hear all
b say 100, a reset, b hear all, b close
a say 10, b hear 10, b say 10, a hear 10, b fin, a hear all, a reset, b hear all
b fin, a hear all, a say 100, a reset, b hear all
a reset, b reset
a say 10, b reset, a hear all, a reset
a reset, b fin, b hear all
a say 100, b close, a hear all
a say 100, b hear 50, b close, a hear all
b say 1000, a say 100, b close, a hear all
b say 1000, b fin, a say 100, b close, a hear all
a fin, b say 100, a close, b hear all
a say 100, a fin, b close, a hear all
a say 100, b say 100, a close, b hear all, b close
a reset, b hear 10, b hear all
""".strip().splitlines()

AFTER_THE_END = """
a close, b say 10, b say 10, b hear all
a close, b say 10, b hear all, b close
a close, b hear all, b say 10, b say 10, b say 10
a reset, b say 10, b say 10, b hear all
a reset, b hear all, b say 10, b say 10
a reset, b hear all, b hear all, b fin
a fin, a say 10, b hear all, b close, a hear all
a fin, b fin, a say 10, b say 10, a hear all, b hear all
a fin, b hear all, b close, a hear all, a say 10
a say 100, b hear 100, b close, a hear all, a say 100, a say 100
b say 100, a hear 100, a close, b hear all, b say 100, wait, b say 100
a fin, b hear all, b fin, b say 10, a hear all
a say 100, b reset, a say 10, a hear all
a say 100, b hear 100, b reset, a say 10, a say 10, a hear all
a close, b fin, b say 10, b hear all
a say 10, b fin, a hear all, b close, a say 10, a hear all
a say 10, b hear 10, b fin, a hear all, b close, a say 10, a say 10, a hear all
b say 5000, b close, a say 10, a hear all, a say 10
b say 5000, b close, a hear 5000, a say 10, a hear all
b say 100, b close, a fin, a hear all, a say 1
a reset, b fin, b say 1
a close, b say 100, b fin, b hear all
""".strip().splitlines()

URGENT = """
a shout, b catch, b hear 0, a close, b hear all
a shout, b inline, b hear 1, a close, b hear all
a say 100, a shout, b hear 100, b catch, a say 100, b hear 100, a fin, b hear all
b inline, a say 100, a shout, a say 100, b hear 201, a fin, b hear all
b inline, a say 100, a shout, a close, b hear all
a say 100, a shout, a say 100, b catch, b hear 200, a close, b hear all
a say 100, a shout, a say 100, b hear 200, b catch, a close, b hear all
b catch, a shout, b catch, b catch, a close, b hear all
a shout, b catch, a shout, b catch, a say 10, a shout, b hear 10, b catch, a close, b hear all
b inline, a shout, b hear 1, a shout, b hear 1, a say 1, a shout, b hear 2, a close, b hear all
a say 10, a shout, a shout, a say 10, b catch, a close, b hear all
b inline, a say 10, a shout, a shout, a say 10, a close, b hear all
a say 50, a shout, a fin, b catch, b hear all, b say 50, b shout, b close, a hear all
b inline, a say 50, a shout, a fin, b hear all, b say 50, b close, a hear all
a shout, a fin, b hear all, b say 10, b close, a hear all
b inline, a shout, a fin, b hear all, b say 10, b close, a hear all
a say 50, a shout, a reset, b hear all
b inline, a say 50, a shout, a say 50, a reset, b hear all
b inline, a shout, a reset, b hear all
a shout, b close, a hear all
a shout, b catch, b close, a hear all
a say 20, a shout, b hear 20, b catch, b close, a hear all, a shout, a shout
b fin, a hear all, a say 10, a shout, a say 10, b catch, b hear 20, a fin, b hear all
a shout, b shout, a catch, b catch, a say 5, b say 5, b hear 5, a hear 5, a close, b hear all
a inline, b inline, a shout, b shout, a say 3, b say 3, b hear 4, a hear 4, a close, b hear all
a fin, a shout, b hear all, b shout, a catch, b close, a hear all
b inline, a say 20000, a shout, a say 9999, b hear 10000, b hear 10001, b hear 9999, a close, b hear all
a reset, b shout, b catch, b hear all
""".strip().splitlines()

AT_ONCE = """
a say 100 + a fin, b hear all, b say 100 + b fin, a hear all, a close, b close
a say 100 + a close, b hear all, b close
a say 100 + a reset, b hear all, b close
a say 30000 + a fin, b say 30000 + b fin, b hear all, a hear all
a say 20000 + a reset, b hear all
a say 1 + a say 1 + a say 1 + a say 1 + a say 1 + a fin, b hear all, b close, a hear all
a fin + a close, b hear all, b close
a fin + a reset, b hear all
a say 10 + a fin + a reset, b hear all
a say 10, b hear 10 + b say 20 + b close, a hear all
a say 10, b hear 5 + b say 20 + b close, a hear all
a fin, b hear all + b say 20000 + b close, a hear all, a close
a fin, b hear all + b say 10 + b reset, a hear all
b say 10 + b close, a say 10, a say 10, a hear all
a say 10 + a close, b say 10, b fin, b hear all
b inline, a say 100 + a shout + a say 100 + a fin, b hear all, b close, a hear all
a shout + a fin, b catch, b hear all, b say 10 + b shout + b close, a hear all
b inline, a shout + a close, b hear all, b close
b inline, a say 5 + a shout + a reset, b hear all
b inline, a shout + a say 20000, b hear 20001, a close, b hear all
a say 100 + a shout, b hear 100, b catch, a say 1 + a fin, b hear all
""".strip().splitlines()

FLOODS = """
a pour 3000000, wait, b hear 3000000, a poured, a close, b hear all
a pour 3000000, wait, b say 1000, a hear 1000, b hear 3000000, a poured, a fin, b hear all, b close, a hear all
a pour 12000000, a stuck, b hear 12000000, a poured, a fin, b hear all, b say 10, b close, a hear all
a pour 12000000, a stuck, b say 500, b fin, a hear all, b hear 12000000, a poured, a close, b hear all
a pour 2000000, b pour 2000000, wait, b hear 2000000, a hear 2000000, a poured, b poured, a close, b hear all
a pour 2000000, wait, b fin, a hear all, b hear 2000000, a poured, a fin, b hear all
a pour 2000000, b hear 1000, wait, b hear 1999000, a poured, a fin, b hear all, b say 10, b close, a hear all
b fin, a hear all, a pour 3000000, wait, b hear 3000000, a poured, a close, b hear all
a pour 3000000, b hear 3000000, a poured, b pour 3000000, a hear 3000000, b poured, b close, a hear all
a pour 100000000, a stuck, b reset, a poured, a hear all
a pour 100000000, b hear 100000, b reset, a poured, a hear all
a pour 8000000, a stuck, a reset, b hear rest, b close
a pour 8000000, b hear 10000, a reset, b hear rest
a pour 8000000, a stuck, a close, b hear rest, b close
a fin, b hear all, b pour 100000000, b stuck, a reset, b poured
a fin, b hear all, b pour 4000000, b stuck, a hear 4000000, b poured, b close, a hear all
b fin, a hear all, a pour 100000000, b hear 100, a stuck, b reset, a poured
b inline, a pour 500000, b hear 500000, a poured, a shout, a say 10, b hear 11, a fin, b hear all
a pour 2000000, b hear 1000000, wait, b hear 500000, wait, b hear 500000, a poured, a close, b hear all
""".strip().splitlines()

LATE = """
late, a say 100, b accept, b hear 100, b say 10, a hear 10, a close, b hear all
late, a say 100, a fin, b accept, b hear all, b say 10, b close, a hear all
late, a say 30000 + a fin, b accept, b hear all, b say 10, b close, a hear all
late, a fin, b accept, b hear all, b say 10, b close, a hear all
late, a close, b accept, b hear all, b close
late, a say 100 + a close, b accept, b hear all
late, wait, b accept, b say 10, a hear 10, b close, a hear all
late, b accept, b close, a hear all
late, b accept, b reset, a hear all
late, a say 10, b accept, b close, a hear all
late, a say 10 + a shout + a say 10, b accept, b inline, b hear 21, a close, b hear all
late, a pour 3000000, wait, b accept, b hear 3000000, a poured, a fin, b hear all, b close, a hear all
""".strip().splitlines()

GROUPS = {
    "orderly ends": ORDERLY,
    "resets": RESETS,
    "words after the end": AFTER_THE_END,
    "urgent bytes": URGENT,
    "many things at once": AT_ONCE,
    "floods": FLOODS,
    "late backends": LATE,
}
