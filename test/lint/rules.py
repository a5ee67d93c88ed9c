#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""rules.py ROOT RULE - rules of the house that a look at the text can check."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
LEAVE_OUT = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''


def files(pattern, *tops):
    return [p for top in tops for p in sorted((root / top).rglob(pattern))
            if p.is_file() and "__pycache__" not in p.parts]


def sources():
    return files("*.[ch]", "src", "include", "test", "tools")


def code(path):
    """A file without comments and strings, line for line."""
    return re.sub(LEAVE_OUT, lambda m: '""' + "\n" * m[0].count("\n"),
                  path.read_text(), flags=re.S)


def only(where, call):
    """Calls in src, of what only the files in @where may call."""
    for path in files("*.[ch]", "src"):
        if not re.fullmatch(where, path.relative_to(root / "src").as_posix()):
            for n, line in enumerate(code(path).split("\n"), 1):
                if m := re.search(rf"(?<![\w.>])({call})\s*\(", line):
                    yield path, n, f"calls {m[1]}()"


def marks():
    """Notes of work that is left: they belong into issues."""
    # Put together, so that this line is none.
    words = "|".join(a + b for a, b in (("TO", "DO"), ("FIX", "ME"), ("X", "XX")))
    top = [p for p in sorted(root.iterdir()) if p.is_file()]
    for path in top + files("*", "src", "include", "test", "tools", ".ci"):
        for n, line in enumerate(path.read_text(errors="replace").split("\n"), 1):
            if m := re.search(rf"\b({words})\b", line):
                yield path, n, m[1]


def licence():
    for path in sources():
        if not path.read_text().startswith("/* SPDX-License-Identifier: MIT */\n"):
            yield path, 1, "is not the SPDX line"


def width():
    for path in sources():
        for n, line in enumerate(path.read_text().split("\n"), 1):
            if len(line.expandtabs(8)) > 100:
                yield path, n, f"has {len(line.expandtabs(8))} columns"


def size():
    """A compass, not a fence: says, and never fails."""
    for path in sources():
        text = path.read_text()
        if (lines := text.count("\n")) > 500:
            print(f"{path.relative_to(root)}: {lines} lines")
        for m in re.finditer(r"^\{\n(.*?)^\}", text, re.M | re.S):
            if (lines := m[1].count("\n")) > 60:
                n = text.count("\n", 0, m.start())
                print(f"{path.relative_to(root)}:{n}: a function of {lines} lines")
    return []


RULES = {
    "splice": lambda: only(r"relay/splice\.c", "splice|tee|vmsplice"),
    "sockets": lambda: only(r"net/.*|relay/(copy|lane|urgent)\.c",
                            "recv(from|m?msg)?|send(to|m?msg|file)?"),
    "exit": lambda: only(r"daemon/main\.c", "exit|_exit|_Exit|quick_exit|abort|errx?"),
    "log": lambda: only(r"(conf|proxy|daemon)/.*|base/log\.[ch]", r"log_\w+|v?syslog|perror|v?printf|v?dprintf"),
    "marks": marks,
    "licence": licence,
    "width": width,
    "size": size,
}

bad = list(RULES[sys.argv[2]]())
for path, line_number, what in bad:
    print(f"{path.relative_to(root)}:{line_number}: {what}")
sys.exit(bool(bad))
