#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs.py CHECK ARG... - what the manual pages say against what is there.

    options PAGE SLUICE     options, with arguments, defaults and ranges, of --help and errors = of sluice(8)
    totals PAGE SLUICE      names of the JSON totals = items of its TOTALS
    library PAGE HEADER MAP functions, members and constants are in sluice(3)
    example PAGE HEADER CC...   the program in sluice(3) compiles
    probes PAGE SRC         probes in the source, and how many arguments = items of PROBES
    reasons SCRIPT TALLY_H  names of fallbacks in a script of tools/lab, by number
"""
import json
import pathlib
import re
import signal
import subprocess
import sys

check, page, thing, *rest = sys.argv[1:]
text = pathlib.Path(page).read_text()


def section(name):
    return re.search(rf"^\.Sh {name}\n(.*?)(?=^\.Sh |\Z)", text, re.M | re.S)[1]


def items(part):
    return "\n".join(re.findall(r"^\.It (.*)", part, re.M))


def usage():
    return subprocess.run([thing, "--help"], check=True, capture_output=True, text=True).stdout


# "  -c, --config=FILE  words [default]"
USAGE = re.compile(r"^ +(?:(-\w), )?--([a-z-]+)(\S*) {2,}.*?(?: \[([^\]\s]+)\])?$", re.M)
# Options that share an item stand above one another.
ITEM = re.compile(r"^((?:\.It [^\n]*\n)+)(.*?)(?=^\.It |\Z)", re.M | re.S)
# What any SIZE and any TIME may be.
WHOLE = re.compile(r"(0|1ms) to (576h|1024G)$")


def range_of(option):
    """What an error says would be right, for a value that never is."""
    done = subprocess.run([thing, f"--{option}=", "1", "127.0.0.1:1"], capture_output=True, text=True)
    found = re.search(r"from (\S+ to [^\s,]+)", done.stderr)
    return found and not WHOLE.match(found[1]) and found[1]


def there_is(letter, name, arg, default, limits):
    yield f"--{name}{arg}"
    if letter:
        yield f"{letter}, --{name}"
    if default:
        yield f"--{name}: the default {default}"
    if limits:
        yield f"--{name}: the range {limits}"


def shown(item):
    """The letter, name and argument of an .It line."""
    item = re.sub(r"Ns Op (.*)", r"[\1]", item)
    letter, name, arg = re.search(r"(?:Fl (\w)\b.*?)?Fl -([a-z-]+)(.*)", item).groups()
    return letter and f"-{letter}", name, re.sub(r"\b(Ns|Cm|Ar)\b| ", "", arg)


def options():
    said, told = set(), set()
    for letter, name, arg, default in USAGE.findall(usage()):
        said.update(there_is(letter, name, arg, default, "=" in arg and range_of(name)))
    for heads, body in ITEM.findall(section("OPTIONS")[section("OPTIONS").index(".Bl"):]):
        default = re.search(r"^Default:\n\.Cm (\S+)", body, re.M)
        limits = re.search(r"^Range: (\S+ to \S+)\.$", body, re.M)
        for head in heads.splitlines():
            told.update(there_is(*shown(head), default and default[1], limits and limits[1]))
    return said, told


def names(value):
    for key, inner in value.items():
        yield key
        if isinstance(inner, dict):
            yield from names(inner)


def totals():
    with subprocess.Popen([thing, "--stats=json", "127.0.0.1:0", "127.0.0.1:9"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sluice:
        while (line := sluice.stderr.readline()) and "ready:" not in line:
            pass
        sluice.send_signal(signal.SIGTERM)
        report = json.loads(sluice.communicate(timeout=10)[0])
    return set(names(report)), set(re.findall(r"Cm (\w+)", items(section("TOTALS"))))


def library():
    header = pathlib.Path(thing).read_text()
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    there = set(re.findall(r"^\t(\w+);", pathlib.Path(rest[0]).read_text(), re.M))
    there |= set(re.findall(r"\b(SLUICE_\w+)", code)) - {"SLUICE_H"}
    for body in re.findall(r"^struct \w+ \{(.*?)^\}", code, re.M | re.S):
        there |= set(re.findall(r"(\w+)(?:\[\d+\])?;", body))
    return there, set(re.findall(r"^\.(?:Fn|Fo|Dv|It Va) (\w+)", text, re.M)) - {
        "NULL", "SIGPIPE", "TCP_NODELAY", "SO_KEEPALIVE", "SO_OOBINLINE"}


def example():
    program = re.search(r"^\.Bd -literal\n(#include.*?)^\.Ed", text, re.M | re.S)[1]
    done = subprocess.run([*rest, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-xc", "-",
                           "-I", pathlib.Path(thing).parent],
                          input=program.replace("\\e", "\\"), text=True)
    return ({"a program that compiles"}, set()) if done.returncode else (set(), set())


def probes():
    there = {(name, rest.count(",")) for path in pathlib.Path(thing).rglob("*.c")
             for name, rest in re.findall(r"\bprobe\((\w+)(.*?)\);", path.read_text(), re.S)}
    told = {(name, len(rest.split())) for name, rest in re.findall(r"^Fn (\w+)(.*)", items(section("PROBES")), re.M)}
    return tuple({f"{name} with {n} arguments" for name, n in found} for found in (there, told))


def reasons():
    names = re.search(r"define RELAY_FALLBACKS\(X\)(.*?)\n\n", pathlib.Path(thing).read_text(), re.S)[1]
    return ({f"{n} {name}" for n, name in enumerate(re.findall(r"X\((\w+),", names), 1)},
            {" ".join(m) for m in re.findall(r'@why\[(\d+)\] = "(\w+)";', text)})


there, told = {"options": options, "totals": totals,
               "library": library, "example": example, "probes": probes, "reasons": reasons}[check]()
for name in sorted(there - told):
    print(f"{page}: does not tell of {name}")
for name in sorted(told - there):
    print(f"{page}: tells of {name}, which is not there")
sys.exit(there != told)
