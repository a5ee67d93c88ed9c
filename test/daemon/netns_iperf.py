#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""iperf3 through namespaces and veth, both ways."""
import json

from kit import MIB, check, equal, proc, run, test, ways
from kit.netns import NEAR, Row, need

PORT = 5201


def measure(row, s, *args):
    """One run of eight streams. Return: bytes that arrived."""
    server = row.serve(PORT, "iperf3", "-s", "-1", "-p", str(PORT))
    status, out = row.run("iperf3", "-c", NEAR, "-p", str(s.addr[1]), "-P", "8", "-t", "1", "-J", *args)
    server.process.wait(proc.PATIENCE_S)  # or its port may still be its own when the next one wants it
    result = json.loads(out)
    check(status == 0 and "error" not in result, f"iperf3 {args}: exit status {status}: {result.get('error')}")
    streams = result["end"]["streams"]
    equal(len(streams), 8, "streams")
    check(all(x["receiver"]["bytes"] > 0 for x in streams), "a stream brought nothing")
    return result["end"]["sum_received"]["bytes"]


@test(each=ways())
def eight_streams_of_iperf3_go_through_both_ways(t):
    need("iperf3")
    row = Row(t)
    s = row.sluice(PORT)
    up = measure(row, s)
    down = measure(row, s, "-R")
    totals = s.stats_at_rest()
    b = totals["bytes"]
    check(up > 16 * MIB and down > 16 * MIB, f"{up} bytes up, {down} down in a second")
    check(b["to_targets"] >= up and b["to_clients"] >= down, f"{b}, iperf3 says {up} up and {down} down")
    equal(b["read"], b["delivered"] + b["dropped"], "read, against delivered and dropped")
    equal(b["by_buffer" if t.way["mode"] == "splice" else "by_pipe"], 0, "bytes by the other path")
    equal(totals["connections"]["accepted"], 18, "connections: eight streams and one for control, twice")


if __name__ == "__main__":
    run()
