#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""layers.py ROOT - each file includes its own header first, then system
headers, then project headers of its own layer or of those below."""
import pathlib
import re
import sys

LAYERS = ["base", "net", "relay", "conf", "proxy", "daemon"]
src = pathlib.Path(sys.argv[1], "src")
bad = []

for path in sorted(src.rglob("*.[ch]")):
    name = path.relative_to(src).as_posix()
    is_lib = name == "lib.c"  # tells sluice.h in terms of relay/
    own = "sluice.h" if is_lib else name[:-1] + "h"
    layer = LAYERS.index("relay" if is_lib else name.split("/")[0])
    includes = re.findall(r'^#\s*include\s*(["<])([^">]+)', path.read_text(), re.M)
    if path.suffix == ".c" and (is_lib or (src / own).exists()):
        if includes[:1] != [('"', own)]:
            bad.append(f'{name}: includes "{own}", its own header, not first')
        includes = includes[1:]
    if includes != sorted(includes, key=lambda i: i[0] == '"'):
        bad.append(f"{name}: includes a system header behind a project header")
    for quote, header in includes:
        above = LAYERS[layer + 1:]
        if header.startswith("relay/uring/") and not name.startswith("relay/uring/"):
            bad.append(f'{name}: includes "{header}", which is for relay/uring/ alone: see relay/engine.h')
        if quote == '"' and header.split("/")[0] not in LAYERS[:layer + 1]:
            why = "a layer above" if header.split("/")[0] in above else "no layer"
            bad.append(f'{name}: includes "{header}", which is {why}')

print(*bad, sep="\n", end="\n" * bool(bad))
sys.exit(bool(bad))
