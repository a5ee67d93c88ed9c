# SPDX-License-Identifier: MIT
"""What the report is written with: numbers for people, and tables that keep all of a number."""
import html
import statistics


def text(value):
    return html.escape(str(value))


def values(samples, figure):
    return [s[figure] for s in samples or [] if s and s.get(figure) is not None]


def median(samples, figure):
    """None if no sample has it."""
    return statistics.median(values(samples, figure)) if values(samples, figure) else None


def size(n):
    """Bytes, for people: "8 KiB", "1.3 MiB"."""
    for unit, big in (("MiB", 2**20), ("KiB", 2**10)):
        if n >= big * 0.99:
            many = n / big
            return f"{many:.0f} {unit}" if many >= 9.5 or abs(many - round(many)) < 0.05 else f"{many:.1f} {unit}"
    return f"{n:.0f} bytes"


def percent_more(a, b):
    """How @a compares with @b: "12 % more"."""
    return f"{abs(a / b - 1) * 100:.0f} % {'more' if a >= b else 'less'}"


def listed(words):
    words = list(words)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def many(n, what):
    return f"{n} {what}{'s' * (str(n) != '1')}"


def cell(value, form=",.1f", spread=()):
    """A number, and in data-value all of it; a dash where there is none. @spread: all of which it is the median."""
    if value is None:
        return "<td>–</td>"
    small = f"<small>{min(spread):{form}}–{max(spread):{form}}</small>" if len(spread) > 1 else ""
    return f'<td data-value="{value!r}">{value:{form}}{small}</td>'


def table(name, caption, head, rows):
    """@rows: (what stands first, its cells). Each name is that of one table of the page."""
    told = [f'<div class="wide broad"><table id="{name}"><caption>{text(caption)}</caption><thead><tr>',
            "".join(f"<th>{text(h)}</th>" for h in head), "</tr></thead><tbody>"]
    told += [f"<tr><td>{text(first)}</td>{''.join(cells)}</tr>" for first, cells in rows]
    return "\n".join([*told, "</tbody></table></div>"])


def figures_table(name, caption, samples, known, head="rung"):
    """Medians of the figures that any sample has; of the first one, the least and the most as well."""
    figures = [f for f in known if any(values(all_, f) for all_ in samples.values())]

    def cells(all_):
        for f in figures:
            yield cell(median(all_, f), "," + known[f][1], values(all_, f) if f == figures[0] else ())
    rows = [(who, list(cells(all_))) for who, all_ in samples.items()]
    return table(name, caption, [head] + [known[f][0] for f in figures], rows)
