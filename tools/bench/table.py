# SPDX-License-Identifier: MIT
"""Medians with their spread, and ratios round by round."""
import statistics

from workloads import FIGURES


def spread(values, form):
    """The median of all rounds, and the least and the most."""
    text = f"{statistics.median(values):{form}}"
    return text + (f" [{min(values):{form}}-{max(values):{form}}]" if len(values) > 1 else "")


def ratios(samples, base, figure):
    """Round by round, so that a machine that drifts does so for both."""
    pairs = [(s[figure], b[figure]) for s, b in zip(samples, base) if s and b and s.get(figure) and b.get(figure)]
    return [a / b for a, b in pairs]


def lines_of(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def write(name, about, samples, missing, base, known=None, head="contestant"):
    """
    samples  contestant: a sample or None for each round
    missing  contestant: why it has none
    known    figures, as FIGURES is: those
    head     what the first column is called
    Yields lines of Markdown.
    """
    known = known or FIGURES
    figures = [f for f in known if any(s and f in s for all_ in samples.values() for s in all_)]
    yield f"### {name}: {about}"
    yield ""
    rows = []
    for who, all_ in samples.items():
        row = [who]
        for f in figures:
            values = [s[f] for s in all_ if s and f in s]
            row.append(spread(values, known[f][1]) if values else "-")
        rows.append(row)
    rows += [[who] + [why] + [""] * (len(figures) - 1) for who, why in missing.items()]
    yield from lines_of([head] + [known[f][0] for f in figures], rows)
    yield ""
    judged = [f for f in figures if known[f][2] != " "]
    rows = []
    for who, all_ in samples.items():
        if who != base and base in samples:
            got = [ratios(all_, samples[base], f) for f in judged]
            if any(got):
                rows.append([f"{who} / {base}"] + [spread(r, ".2f") if r else "-" for r in got])
    if rows:
        better = {"+": "more", "-": "less"}
        yield from lines_of(["ratio"] + [f"{known[f][0]} ({better[known[f][2]]} is better)" for f in judged], rows)
        yield ""
