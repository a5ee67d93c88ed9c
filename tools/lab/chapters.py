# SPDX-License-Identifier: MIT
"""The chapters of the report: what the results of each command say, in words and tables.

Every sentence with a number in it is made here, of results and nothing else.
"""
import chart
import ladder
import perf_stat
import rr
import stacks
import syscalls
from testbed import Trouble
from words import cell, figures_table, listed, many, median, percent_more, size, table, text

MOST = 12  # rows of a comparison
CALL = (("calls", ","), ("errors", ","), ("seconds", ".3f"))
SMALL, REST = 0.005, "all others"  # system calls of less than this share are one row


class Ladder:
    """Told of as many streams as there are; all have their tables."""

    def __init__(self, result):
        self.all, self.rounds = result["streams"], result["rounds"]
        self.n = max(self.all, key=int)
        self.rungs = {name: s for name, s in self.all[self.n].items() if name != "direct" and any(s)}
        asked = [name for name in self.rungs if name != "auto"]  # by their options: auto is told nothing
        if not asked:
            raise Trouble("the ladder has no rung that succeeded")
        self.best, self.worst = (choose(asked, key=self.gbit) for choose in (max, min))
        self.direct = median(self.all[self.n].get("direct"), "gbit_s")

    def of(self, rung, figure):
        return median(self.rungs.get(rung), figure)

    def gbit(self, rung):
        return self.of(rung, "gbit_s")

    def cpu(self, rung):
        return self.of(rung, "cpu_s_per_gib")

    def bite(self, rung):
        return size(self.of(rung, "bytes_per_call"))

    def headline(self):
        larger = self.of(self.best, "bytes_per_call") > self.of(self.worst, "bytes_per_call")
        why = "more bytes a call" if larger else "and not for more bytes a call"
        return (f"From {self.gbit(self.worst):.1f} to {self.gbit(self.best):.1f} Gbit/s: "
                f"the same {many(self.n, 'stream')}, {why}")

    def dek(self):
        said = (f"As {self.worst}, sluice moved {self.bite(self.worst)} a system call; as {self.best}, "
                f"{self.bite(self.best)}. The processor time that it took to forward a GiB went from "
                f"{self.cpu(self.worst):.2f} to {self.cpu(self.best):.2f} seconds.")
        if self.direct:
            said += f" With no forwarder in between, the streams reach {self.direct:.1f} Gbit/s."
        return said

    def tiles(self):
        yield (f"{self.gbit(self.best):.1f} Gbit/s",
               f"{self.best}, the fastest of {len(self.rungs)} settings, {many(self.n, 'stream')}")
        yield f"{self.gbit(self.best) / self.gbit(self.worst):.1f}×", f"what {self.worst} moves"
        yield f"{self.cpu(self.best) * 1000:.0f} ms", f"of processor time a GiB as {self.best}"
        if self.direct:
            yield f"{self.gbit(self.best) / self.direct * 100:.0f} %", "of what the streams do without a forwarder"

    def best_of(self, mode):
        """The fastest setting of a mode, None if it has none."""
        of_mode = [name for name in self.rungs if name.split("-")[0] == mode]
        return max(of_mode, key=self.gbit) if of_mode else None

    def path_said(self, mode):
        rung = self.best_of(mode)
        return (f"As {rung} each call moved {self.bite(rung)}, and a MiB took {self.of(rung, 'calls_per_mib'):.1f} "
                f"calls."
                if rung else "")

    def said(self):
        off = max(abs(self.of(r, "product_gbit_s") / self.gbit(r) - 1) for r in self.rungs)
        rounds = f"the medians of {self.rounds} rounds" if self.rounds > 1 else "those of a single round"
        return (f"A row is a setting of sluice: its mode, and how large its buffer or pipe is; its figures are "
                f"{rounds}. What a forwarder moves is what each call moves, times how many calls it makes; and as "
                f"each byte is moved twice, in and out, half of that. It is arithmetic, and it holds: in no row of "
                f"{many(self.n, 'stream')} is the product more than {off * 100:.2g} % off what the client measured. "
                f"The interesting part is which of the two factors gives way when a call is asked to move more.")

    def chart_said(self):
        ahead = [r for r in self.rungs if self.direct and self.gbit(r) > self.direct]
        return (f" {listed(ahead)} came out ahead of no forwarder at all: what is within the spread of the rounds is "
                f"chance, and where it is not, a connection that is cut in two can be worked on by more processors at "
                f"once." if ahead else "")

    def look_for(self):
        calls = {r: self.of(r, "calls_per_mib") for r in self.rungs}
        most, least = max(calls, key=calls.get), min(calls, key=calls.get)
        yield (f"<b>Calls a MiB</b>, since every call has a price of its own, whatever it moves: {calls[most]:.0f} as "
               f"{most}, where a GiB takes {self.cpu(most):.2f} s of processor time, and {calls[least]:.1f} as "
               f"{least}, where it takes {self.cpu(least):.2f} s.")
        copy, splice = "copy-64k", "splice-64k"
        if copy in self.rungs and splice in self.rungs:
            yield (f"<b>The copy itself.</b> {copy} and {splice} move {self.bite(copy)} and {self.bite(splice)} a "
                   f"call; {splice} takes {percent_more(self.cpu(splice), self.cpu(copy))} processor time a GiB. That "
                   f"is the copying; all else that a larger pipe or buffer brings is bytes a call.")
        switches = {r: self.of(r, "context_switches_per_s") for r in self.rungs}
        most, least = max(switches, key=switches.get), min(switches, key=switches.get)
        yield (f"<b>Context switches</b> are between {switches[least]:,.0f} ({least}) and {switches[most]:,.0f} "
               f"({most}) a second. Threads that waited for each other’s locks would show here first, and these share "
               f"none.")
        if "auto" in self.rungs:
            yield (f"<b>auto</b>, which was told nothing, moved {self.bite('auto')} a call and is at "
                   f"{self.gbit('auto') / self.gbit(self.best) * 100:.0f} % of the best.")
        others = [median(s, "others_cpus") for s in self.rungs.values()]
        if None not in others:
            worth = ", which makes these figures worth less" if max(others) > 0.2 else ""
            yield (f"<b>Cpus of others</b> should be near 0: here other programs took up to {max(others):.2f} "
                   f"processors meanwhile{worth}.")

    def charts(self):
        return "\n".join(chart.ladder(many(n, "stream"), by_rung) for n, by_rung in self.all.items())

    def tables(self):
        return "\n".join(figures_table(f"ladder-{n}", many(n, "stream"), by_rung, ladder.FIGURES)
                         for n, by_rung in self.all.items())


class Syscalls:
    """The first and the last of the rungs that were traced."""

    def __init__(self, result):
        self.rungs = result["rungs"]
        self.shown = list(dict.fromkeys((list(self.rungs)[0], list(self.rungs)[-1])))
        self.calls = {name: self._summed(r["threads"]) for name, r in self.rungs.items()}

    @staticmethod
    def _summed(threads):
        total = {}
        for thread in threads:
            for name, call in thread["calls"].items():
                there = total.setdefault(name, dict.fromkeys(call, 0))
                for key, value in call.items():
                    there[key] += value
        return total

    def said(self):
        told = []
        for name in self.shown:
            moves = sum(c["calls"] for call, c in self.calls[name].items() if call not in syscalls.SLEEPS)
            mib = self.rungs[name]["gbit_s"] * 1e9 / 8 * self.rungs[name]["seconds"] / 2**20
            told.append(f"{moves / mib:,.1f} calls a MiB as {name}")
        return (f"The same {many(len(self.rungs[self.shown[0]]['threads']), 'thread')}, with strace counting. Apart "
                f"from waiting, sluice made {listed(told)}. Errors are mostly EAGAIN: nothing to read, or no room to "
                f"write, for now. To be traced costs microseconds a call, so throughput under strace says nothing "
                f"about sluice.")

    def _share(self, rung, call):
        """Of all calls or of all time in them, whichever is more."""
        there = self.calls[rung]
        if call not in there:
            return 0
        return max(there[call][key] / (sum(c[key] for c in there.values()) or 1) for key in ("calls", "seconds"))

    def _of(self, rung, name, large):
        if name != REST:
            return self.calls[rung].get(name, {})
        rest = [c for call, c in self.calls[rung].items() if call not in large]
        return {key: sum(c[key] for c in rest) for key in ("calls", "errors", "seconds")}

    def table(self):
        shares = {call: max(self._share(r, call) for r in self.shown) for r in self.shown for call in self.calls[r]}
        large = sorted((call for call in shares if shares[call] >= SMALL), key=lambda call: -shares[call])
        rows = []
        for name in [*large, REST]:
            cells = []
            for rung in self.shown:
                call = self._of(rung, name, large)
                cells += [cell(call.get(key), form) for key, form in CALL]
            rows.append((name, cells))
        head = ["call"] + [f"{r}: {what}" for r in self.shown for what in ("calls", "errors", "seconds in it")]
        return table("syscalls", "All threads together", head, rows)

    def epoll_said(self):
        said = []
        for name in self.shown:
            seconds = sum(c["seconds"] for c in self.calls[name].values())
            asleep = sum(c["seconds"] for call, c in self.calls[name].items() if call in syscalls.SLEEPS)
            cpu = sum(t["cpu_s"] for t in self.rungs[name]["threads"])
            said.append(f"As {name}, sleeping took {asleep / seconds * 100:.0f} % of all time in calls ({asleep:.1f} "
                        f"of {seconds:.1f} seconds), while the kernel charged its threads {cpu:.1f} seconds of "
                        f"processor time.")
        return " ".join(said)

    def bars(self):
        for name in self.shown:
            for t in self.rungs[name]["threads"]:
                asleep = sum(c["seconds"] for call, c in t["calls"].items() if call in syscalls.SLEEPS)
                awake = sum(c["seconds"] for c in t["calls"].values()) - asleep
                full = max(self.rungs[name]["seconds"], asleep + awake)
                if awake + t["cpu_s"] < full / 100:
                    continue  # the thread that only waits for signals
                widths = [f'<i style="width:{s / full * 100:.1f}%"></i>' for s in (asleep, awake, t["cpu_s"])]
                yield (f'<div class="bar">{text(name)}, thread {text(t["name"])}: {asleep:.2f} s asleep, {awake:.2f} s '
                       f'in other calls, {t["cpu_s"]:.2f} s of processor time<div>{widths[0]}{widths[1]}</div></div>'
                       f'<div class="bar cpu"><div>{widths[2]}</div></div>')


class Stat:
    def __init__(self, result):
        self.rungs, self.streams = result["rungs"], result["streams"]

    def _ipc_said(self):
        known = {name: median(s, "instructions_per_cycle") for name, s in self.rungs.items()}
        known = {name: n for name, n in known.items() if n is not None}
        if not known:
            return ("This machine does not let perf count instructions or cycles, as many virtual machines do not: so "
                    "there are no instructions a cycle and no cache misses here. What is left is what the kernel "
                    "itself counts.")
        low = min(known, key=known.get)
        judged = ("A program that waits for memory all the time is below 0.5 or so; none is, so only fewer "
                  "instructions a byte make it faster." if known[low] > 0.5 else
                  f"{low} is as low as programs are that wait for memory most of the time.")
        return f"Instructions a cycle: {listed(f'{n:.2f} as {name}' for name, n in known.items())}. {judged}"

    def said(self):
        told = []
        for name, s in self.rungs.items():
            cpus, switches = median(s, "cpus_used"), median(s, "context_switches_per_s")
            if cpus is not None and switches is not None:
                told.append(f"{cpus:.2f} processors and {switches:,.0f} context switches a second as {name}")
        return self._ipc_said() + (f" sluice used {listed(told)}." if told else "")

    def table(self):
        return figures_table("stat", many(self.streams, "stream"), self.rungs, perf_stat.FIGURES)


class Requests:
    def __init__(self, result):
        self.size, self.all = result["size_bytes"], result["connections"]
        self.n = max(self.all, key=int)
        self.modes = {who: s for who, s in self.all[self.n].items() if who != "direct" and any(s)}
        if not self.modes:
            raise Trouble("rr has no mode that succeeded")

    def said(self):
        rates = {who: median(s, "transactions_per_s") for who, s in self.modes.items()}
        best = max(rates, key=rates.get)
        others = [f"{who} {percent_more(rate, rates[best])}" for who, rate in rates.items() if who != best]
        said = (f"Requests of {self.size} bytes, each answered before the next, fill no pipe and no buffer: here the "
                f"price of a call is all there is. On {many(self.n, 'connection')} {best} did {rates[best]:,.0f} a "
                f"second{''.join(', ' + other for other in others)}. ")
        calls = {who: median(s, "calls_per_transaction") for who, s in self.modes.items()}
        if calls.get("splice") and calls.get("copy"):
            said += (f"A transaction took {calls['splice']:.1f} calls by pipe and {calls['copy']:.1f} by buffer: a "
                     f"short read by recv(2) says that the socket is empty, and a short one by splice(2) does not, so "
                     f"it must ask again.")
        return said

    def tables(self):
        return "\n".join(figures_table(f"rr-{n}", many(n, "connection"), modes, rr.FIGURES, "mode")
                         for n, modes in self.all.items())


class Flames:
    """Graphs, and what differs between the first and the last rung; by DWARF, which sees all callers."""

    def __init__(self, result):
        self.rungs, self.hz, self.template = result["rungs"], result["hz"], result["template"]
        self.one, self.other = list(self.rungs)[0], list(self.rungs)[-1]
        self.a, self.b = (self.rungs[name]["dwarf"] for name in (self.one, self.other))
        self.graphs = {}  # id: (title, more, stacks)
        for name, both in self.rungs.items():
            for how, words in (("fp", "by frame pointers"), ("dwarf", "by DWARF")):
                more = f"{both[how]['samples']} samples, {both[how]['event']}"
                self.graphs[f"{name}-{how}"] = f"{name}, {words}", more, both[how]["stacks"]
        if self.one != self.other:
            self._compare(self.one, self.a, self.other, self.b)
            self._compare(self.other, self.b, self.one, self.a)

    def _compare(self, name, graph, other, against):
        self.graphs[f"{name}-diff"] = (f"{name}, compared with {other}",
                                       "red costs more here a GiB, blue less, green the same",
                                       stacks.compared(graph, against, self.hz))

    def said(self):
        hidden = {name: stacks.hidden(both) for name, both in self.rungs.items()}
        told = [f"as {name}, {listed(f'<code>{text(h)}</code>' for h in missed)}" for name, missed in hidden.items()
                if missed]
        said = ("What frame pointers do not see, since what it called was built without: " + "; ".join(told) + ". "
                if told else "Here frame pointers saw every function that DWARF did. ")
        if "clock" in self.a["event"]:
            said += (f"This machine has no hardware counter to sample by, so perf took {text(self.a['event'])}, a "
                     f"timer: where interrupts are off it comes late.")
        return said

    def shown(self):
        for name, (title, more, _) in self.graphs.items():
            yield (f'<details class="broad" data-graph="graph-{name}"><summary>{text(title)} <span>{text(more)}</span>'
                   f'</summary></details>')

    def data(self):
        """The page of d3-flame-graph once, and the stacks of each graph, for click.js to put together."""
        def kept(name, value):
            return f'<script type="application/json" id="{name}">{stacks.quoted(value)}</script>'
        yield kept("flame-page", self.template)
        for name, (title, more, tree) in self.graphs.items():
            yield kept(f"graph-{name}", {"stacks": tree, "options": stacks.shown_as(f"{title}: {more}")})

    def rows(self):
        return stacks.differences(self.a, self.b, self.hz)[:MOST]

    def diff_said(self):
        ms = [stacks.samples(g["stacks"]) * stacks.each(g, self.hz) * 1000 for g in (self.a, self.b)]
        said = (f"By these samples a GiB cost sluice {ms[0]:,.0f} ms as {self.one} and {ms[1]:,.0f} ms as "
                f"{self.other}.")
        rows = self.rows()
        real = [r for r in rows if r[3]]
        if real:
            name, x, y, _ = real[0]
            said += (f" The largest difference beyond chance is in <code>{text(name)}</code>: {x * 1000:,.0f} ms "
                     f"against {y * 1000:,.0f}.")
        if len(real) < len(rows):
            said += (f" {len(rows) - len(real)} of the {len(rows)} rows may be chance, by the number of their "
                     f"samples; a longer run tells more.")
        return said

    def table(self):
        rows = [(name, [cell(x * 1000), cell(y * 1000), cell((y - x) * 1000, "+,.1f"),
                        f"<td>{'' if real else 'may be chance'}</td>"]) for name, x, y, real in self.rows()]
        head = ["function", f"{self.one}, ms/GiB", f"{self.other}, ms/GiB", "difference", ""]
        return table("diff", "Functions whose own time a GiB differs most", head, rows)
