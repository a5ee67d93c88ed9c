# SPDX-License-Identifier: MIT
"""Call stacks as perf's flamegraph script writes them, {"n": name, "l": kind, "v": samples of its own, "c": callees}:
put together, compared, and shown by the page of d3-flame-graph."""
import json
import math

MARK_STACKS, MARK_OPTIONS = "/** @flamegraph_json **/", "/** @options_json **/"
# The page has three kinds of frame, each with a colour: here they say how two runs differ.
MORE, LESS, SAME = "root", "kernel", ""  # red, blue, green


def _add(into, node):
    for child in node["c"]:
        there = next((c for c in into["c"] if c["n"] == child["n"] and c["l"] == child["l"]), None)
        if not there:
            there = {"n": child["n"], "l": child["l"], "v": 0, "c": []}
            into["c"].append(there)
        there["v"] += child["v"]
        _add(there, child)


def merged(tree, name):
    """The stacks of all threads, put together under one root."""
    root = {"n": name, "l": "root", "v": 0, "c": []}
    for thread in tree["c"]:
        root["v"] += thread["v"]
        _add(root, thread)
    return root


def walk(node, above=()):
    """Yields each frame, with the names of those below it in the stack."""
    yield node, above
    for child in node["c"]:
        yield from walk(child, (*above, node["n"]))


def samples(tree):
    return sum(node["v"] for node, _ in walk(tree))


def own(tree):
    """{function: samples in itself}"""
    counts = {}
    for node, _ in walk(tree):
        if node["v"]:
            counts[node["n"]] = counts.get(node["n"], 0) + node["v"]
    return counts


def whole(tree):
    """{function: samples in it and in what it called}, once a stack."""
    counts = {}
    for node, above in walk(tree):
        if node["n"] not in above:
            counts[node["n"]] = counts.get(node["n"], 0) + samples(node)
    return counts


def users(tree):
    """Names of functions outside the kernel. What the kernel calls is its own, though perf takes modules for others."""
    found = set()
    for child in tree["c"]:
        if child["l"] != "kernel":
            found |= {child["n"]} | users(child)
    return found - {"[unknown]"}


def hidden(both):
    """Functions that DWARF saw in a hundredth of its samples or more, and frame pointers in none."""
    seen, all_ = whole(both["dwarf"]["stacks"]), samples(both["dwarf"]["stacks"])
    missed = users(both["dwarf"]["stacks"]) - users(both["fp"]["stacks"])
    return sorted(name for name in missed if seen[name] * 100 >= all_)


def change(a, b, a_each, b_each):
    """Of @a and @b samples, worth so many seconds a GiB each: the difference, and whether it is beyond chance."""
    delta, chance = b * b_each - a * a_each, 2 * math.hypot(math.sqrt(a) * a_each, math.sqrt(b) * b_each)
    return delta, abs(delta) > chance


def each(graph, hz):
    """Seconds a GiB that one sample of this graph stands for."""
    return 1 / hz / graph["gib"]


def differences(a, b, hz):
    """What functions themselves cost in two graphs. Return: [(function, s/GiB in a, in b, beyond chance)], most "
    "first."""
    in_a, in_b = own(a["stacks"]), own(b["stacks"])
    each_a, each_b = each(a, hz), each(b, hz)
    rows = []
    for name in in_a.keys() | in_b.keys():
        n, m = in_a.get(name, 0), in_b.get(name, 0)
        rows.append((name, n * each_a, m * each_b, change(n, m, each_a, each_b)[1]))
    return sorted(rows, key=lambda r: (-abs(r[2] - r[1]), r[0]))


def compared(graph, other, hz):
    """The stacks of @graph, each frame coloured by what its function costs here and in @other, wherever it is "
    "called."""
    here, there = whole(graph["stacks"]), whole(other["stacks"])
    each_here, each_there = each(graph, hz), each(other, hz)

    def colour(node):
        n, m = here[node["n"]], there.get(node["n"], 0)
        delta, real = change(m, n, each_there, each_here)
        name = f"{node['n']} ({delta * 1000:+.1f} ms/GiB)"
        return {"n": name, "l": SAME if not real else MORE if delta > 0 else LESS, "v": node["v"],
                "c": [colour(c) for c in node["c"]]}
    return colour(graph["stacks"])


def quoted(value):
    """As JSON that may stand inside a script of a page."""
    return json.dumps(value).replace("</", "<\\/")


def shown_as(context):
    """Options of the page: what its button "Context" shows."""
    return {"colorscheme": "blue-green", "context": context}


def page(template, tree, context):
    """The page of one graph: filled as perf's script does it."""
    return template.replace(MARK_OPTIONS, quoted(shown_as(context))).replace(MARK_STACKS, quoted(tree))
