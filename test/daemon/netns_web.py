#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""nginx and curl through namespaces and veth: every file arrives as it is."""
import hashlib
import os
import random

from kit import KIB, MIB, check, equal, run, test, ways
from kit.netns import NEAR, Row, need

PORT = 8080
FILES = 200
CONF = """
daemon off;
user root;
worker_processes 2;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    sendfile on;
    client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    server {{ listen {port}; root {folder}/www; }}
}}
"""


def sha(data):
    return hashlib.sha256(data).hexdigest()


def web_server(t, row):
    """Return: its folder, and {file name: sha256}"""
    folder = t.folder()
    os.mkdir(folder + "/www")
    rnd = random.Random(1)
    sums = {}
    for name, size in [("big", 64 * MIB)] + [(f"f{n}", rnd.choice((0, 1, 700, 20 * KIB, 300 * KIB))) for n in range(FILES)]:
        data = rnd.randbytes(size)
        sums[name] = sha(data)
        with open(f"{folder}/www/{name}", "wb") as f:
            f.write(data)
    with open(folder + "/nginx.conf", "w") as f:
        f.write(CONF.format(folder=folder, port=PORT))
    row.serve(PORT, "nginx", "-e", folder + "/error.log", "-c", folder + "/nginx.conf")
    return folder, sums


def fetch_big(row, url, sums):
    status, out = row.run("curl", "-sS", "--fail", f"{url}/big")
    check(status == 0, f"curl: exit status {status}: {out[-200:]!r}")
    equal((len(out), sha(out)), (64 * MIB, sums["big"]), "size and sha256 of the big file")


def fetch_many(row, url, sums, folder):
    names = [name for name in sums if name != "big"]
    os.makedirs(folder + "/got", exist_ok=True)
    with open(folder + "/urls", "w") as f:
        for name in names:
            f.write(f'url = "{url}/{name}"\noutput = "{folder}/got/{name}"\n')
    status, out = row.run("curl", "-sS", "--fail", "--parallel", "--parallel-max", "20", "-K", folder + "/urls")
    check(status == 0, f"curl: exit status {status}: {out[-300:]!r}")
    wrong = []
    for name in names:
        with open(f"{folder}/got/{name}", "rb") as f:
            if sha(f.read()) != sums[name]:
                wrong.append(name)
        os.unlink(f"{folder}/got/{name}")
    equal(wrong, [], "files that arrived otherwise than they are")


@test(each=ways())
def a_64_MiB_file_and_200_small_ones_arrive_with_their_sha256(t):
    need("nginx", "curl")
    row = Row(t)
    folder, sums = web_server(t, row)
    s = row.sluice(PORT)
    url = f"http://{NEAR}:{s.addr[1]}"
    fetch_big(row, url, sums)
    fetch_many(row, url, sums, folder)
    totals = s.stats_at_rest()
    b = totals["bytes"]
    equal(b["by_buffer" if t.way["mode"] == "splice" else "by_pipe"], 0, "bytes by the other path")
    equal(sum(totals["fallbacks"].values()), 0, "fallbacks")
    check(b["to_clients"] > 64 * MIB and b["dropped"] == 0, b)


if __name__ == "__main__":
    run()
