# SPDX-License-Identifier: MIT
"""The report as one HTML page: article/ has its text and its looks, chapters.py what the results put into it."""
import os
import re
import string

import chapters
from testbed import Trouble
from words import text

ARTICLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "article")
SECTIONS = ("ladder", "stat", "syscalls", "rr", "flame")  # each by the command of that name
UNIT = r"(\d[\d.,]*) (?=%|Gbit/s|KiB|MiB|GiB|ms\b|s\b)"    # not to be parted by the end of a line


def check(data, path):
    """Raises Trouble unless all is there that the page is made of."""
    for name in ("machine", "commands", *SECTIONS):
        if not data.get(name):
            how = f"; try: lab {name} --json {path}" if name in SECTIONS else ""
            raise Trouble(f"{path} has no results of {name}, and the page is made of nothing else{how}")


def part(name):
    with open(os.path.join(ARTICLE, name)) as f:
        return f.read()


def picture(steps, mode):
    rung = steps.best_of(mode)
    return string.Template(part(mode + ".svg")).substitute(size=rung.split("-", 1)[1].upper() if rung else "")


def disturbed(node):
    """Return: how many samples there are, and how many were taken while others used the machine."""
    inside = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    own = isinstance(node, dict) and ("gbit_s" in node or "transactions_per_s" in node)
    pairs = [(int(own), int(own and "disturbed" in node)), *map(disturbed, inside)]
    return tuple(map(sum, zip(*pairs)))


def disturbed_said(data):
    all_, bad = disturbed([data[name] for name in SECTIONS])
    if bad:
        return (f" {bad} of {all_} samples were taken while other programs used the machine: take them as an "
                f"illustration, not as a measurement.")
    return f" Nothing else ran while the {all_} samples were taken."


def said(data):
    """Return: {field of page.html: what stands there}"""
    steps, flames = chapters.Ladder(data["ladder"]), chapters.Flames(data["flame"])
    calls, stat = chapters.Syscalls(data["syscalls"]), chapters.Stat(data["stat"])
    requests, m = chapters.Requests(data["rr"]), data["machine"]
    return {
        "headline": text(steps.headline()),
        "date": text(data["ladder"]["date"]),
        "dek": text(steps.dek()),
        "tiles": "".join(f"<div><b>{text(n)}</b><span>{text(what)}</span></div>" for n, what in steps.tiles()),
        "path_copy": picture(steps, "copy"),
        "path_copy_said": steps.path_said("copy"),
        "path_splice": picture(steps, "splice"),
        "path_splice_said": steps.path_said("splice"),
        "ladder_said": steps.said(),
        "charts": steps.charts(),
        "chart_said": steps.chart_said(),
        "ladder_tables": steps.tables(),
        "look_for": "\n".join(f"<li>{point}</li>" for point in steps.look_for()),
        "syscalls_said": calls.said(),
        "syscalls_table": calls.table(),
        "epoll_said": calls.epoll_said(),
        "bars": "\n".join(calls.bars()),
        "stat_said": stat.said(),
        "stat_table": stat.table(),
        "rr_said": requests.said(),
        "rr_table": requests.tables(),
        "hz": str(flames.hz),
        "flame_said": flames.said(),
        "graphs": "\n".join(flames.shown()),
        "diff_title": text(f"What differs: {flames.one} against {flames.other}"),
        "diff_said": flames.diff_said(),
        "diff_table": flames.table(),
        "machine_said": text(f"{m['sluice']} on {m['cpus']} processors ({m['model']}), Linux {m['kernel']}."),
        "commands": text("\n".join(data["commands"])),
        "disturbed": disturbed_said(data),
        "data": "\n".join(flames.data()),
    }


def page(data, path):
    """@data: what the file of results at @path holds. Return: the page."""
    check(data, path)
    fields = said(data)
    tied = {name: re.sub(UNIT, "\\1\u00a0", words) for name, words in fields.items() if name != "data"}
    return string.Template(part("page.html")).substitute(fields, **tied, style=part("style.css"),
                                                         script=part("click.js"))
