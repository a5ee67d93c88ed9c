#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kernel_facts.py ROOT - test/kernel/README.md against the repository.

Each number that is cited (K1, K2, ...) has a row there. Each row names tests
that exist, or says "no test: WHY"; and functions that exist in the files that it
names, or says "no code".
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
page = root / "test/kernel/README.md"
CITED = re.compile(r"\bK([1-9]\d*)\b")
SUFFIXES = {".c", ".h", ".cc", ".py", ".sh", ".md", ".build", ".bt", ".3", ".8", ""}
bad = []


def cites():
    """(file, number) of each citation outside of the list itself."""
    for top in ("src", "include", "test", "tools"):
        for path in sorted((root / top).rglob("*")):
            if path.is_file() and path.suffix in SUFFIXES and path not in (page, pathlib.Path(__file__).resolve()) \
                    and "__pycache__" not in path.parts and "corpus" not in path.parts:
                for number in sorted(set(map(int, CITED.findall(path.read_text(errors="replace"))))):
                    yield path.relative_to(root), number


def named(cell):
    """(file, function) of a cell like `a.c`: `f`, `g`; `b.c`: `h`. A file is None
    if the cell begins without one, a function if a file has none."""
    last, used = None, True
    for word in re.findall(r"`([^`]+)`", cell):
        if re.search(r"\.(c|py)$", word):
            if not used:
                yield last, None
            last, used = word, False
        else:
            yield last, word
            used = True
    if not used:
        yield last, None


def check(number, cell, places, pattern, without):
    """What a cell names has to be where it says."""
    if m := re.match(rf"{without}\b(.*)", cell):
        if not m[1].strip(" :") and without == "no test":
            bad.append(f'K{number}: "{without}" without a reason')
        return
    found = list(named(cell))
    if not found:
        bad.append(f'K{number}: names nothing where "{without}: WHY" would be right')
    for name, function in found:
        path = next((p / name for p in places if name and (p / name).is_file()), None)
        if not path:
            bad.append(f"K{number}: there is no file {name}")
        elif not function:
            bad.append(f"K{number}: names {name}, and nothing in it")
        elif not re.search(pattern.format(function), path.read_text(), re.M):
            bad.append(f"K{number}: there is no {function} in {path.relative_to(root)}")


rows = set()
for line in page.read_text().split("\n"):
    if not (m := re.match(r"\| K(\d+) \|", line)):
        continue
    cells = [c.strip() for c in line.strip("|").split(" | ")]
    number = int(m[1])
    if len(cells) != 5 or not all(cells):
        bad.append(f"K{number}: has {len(cells)} columns, or an empty one; 5 are right")
        continue
    if number in rows:
        bad.append(f"K{number}: has two rows")
    rows.add(number)
    check(number, cells[3], (root / "test/kernel", root / "test"),
          r"^(?:START_TEST\(\s*{0}\s*\)|def {0}\()", "no test")
    # A definition begins a line; a call is indented.
    check(number, cells[4], (root / "src",), r"^\w[^\n;]*\b{0}\(", "no code")

if not rows:
    bad.append("no row begins with | K1 |")
for path, number in cites():
    if number not in rows:
        bad.append(f"K{number}: cited in {path}, and has no row")
# A fact that another row leans on.
for number in sorted(set(map(int, CITED.findall(page.read_text()))) - set(rows)):
    bad.append(f"K{number}: cited in the list, and has no row")

for line in bad:
    print(f"{page.relative_to(root)}: {line}")
sys.exit(bool(bad))
