#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rules from a file, in rinetd's form."""
import os

from kit import check, equal, need_ipv6, run, test

WRONG = [
    ("127.0.0.1 0 127.0.0.1", 1, "3 fields", "four"),
    ("127.0.0.1 0 127.0.0.1 9 tcp", 1, "5 fields", "four"),
    ("\n# x\n\n127.0.0.1 x 127.0.0.1 9", 4, '"x"', "1 to 65535"),
    ("127.0.0.1 0 127.0.0.1 9\n127.0.0.1 0 127.0.0.1 0\n", 2, '"0"', "1 to 65535"),
    ("127.0.0.1 0 a/b 9", 1, '"a/b"', "character"),
    ("127.0.0.1 0 [::1 9", 1, '"[::1"', "bracket"),
    ("nosuch.invalid 0 127.0.0.1 9", 1, "nosuch.invalid", ""),
    ("127.0.0.1 0 127.0.0.1 9\r\n127.0.0.1 70000 127.0.0.1 9\r\n", 2, '"70000"', "1 to 65535"),
    ("192.0.2.1 1 127.0.0.1 9", 1, "192.0.2.1:1", ""),
    ("allow 192.0.2.*", 1, "2 fields", "four"),
    ("127.0.0.1 0 \xff\x01\x02 9", 1, "character", ""),
    ("127.0.0.1 0 127.0.0.1 9\n127.0.0.1 0 127.0.0.1 9\0garbage\n", 2, "zero byte", ""),
    ("127.0.0.1 0 127.0.0.1 9\n#" + "x" * 5000, 2, "longer", ""),
]


def served(t, s, addrs, backend):
    """Each of these addresses leads to the backend."""
    for addr in addrs:
        client, server = t.pair(addr, backend)
        client.sendall(b"hello")
        equal(server.recv(5), b"hello", f"bytes through {addr}")


@test()
def a_rule_is_a_line_of_four_fields(t):
    backend = t.backend()
    path = t.file("127.0.0.1 0 127.0.0.1 %d\n" % backend.addr[1])
    for words in (["-c", path], ["-c" + path], ["--config", path], ["--config=" + path]):
        s = t.sluice(*words)
        equal(len(s.addrs), 1, "rules")
        served(t, s, s.addrs, backend)


@test()
def blank_lines_comments_tabs_crlf_and_a_missing_last_newline_do_no_harm(t):
    backend = t.backend()
    port = backend.addr[1]
    s = t.sluice("-c", t.file(
        f"# rules\n\n   \t\n127.0.0.1 0 127.0.0.1 {port}\r\n\r\n"
        f"\t127.0.0.1\t0   127.0.0.1 \t{port}   # of the second kind\n#127.0.0.1 1 127.0.0.1 1\n"
        f"  # indented\n127.0.0.1 0 127.0.0.1 {port}"))
    equal(len(s.addrs), 3, "rules")
    served(t, s, s.addrs, backend)


@test()
def a_byte_order_mark_in_front_is_skipped_and_anywhere_else_it_is_not(t):
    backend = t.backend()
    bom, rule = b"\xef\xbb\xbf", b"127.0.0.1 0 127.0.0.1 %d\n" % backend.addr[1]
    for content in bom + rule, bom + b"# rules\r\n" + rule, bom + b"\n" + rule:
        s = t.sluice("-c", t.file(content))
        equal(len(s.addrs), 1, "rules")
        served(t, s, s.addrs, backend)
    for content, line in ((rule + bom + rule, 2), (b" " + bom + rule, 1), (bom + bom + rule, 1)):
        path = t.file(content)
        status, _, err = t.sluice("-c", path, ready=False).result()
        check(status == 1 and len(err) == 1 and f"{path}:{line}: " in err[0], f"{content!r}: exit {status}, {err}")


@test()
def a_target_that_does_not_resolve_is_named_by_file_and_line_and_the_others_start(t):
    backend = t.backend()
    path = t.file("127.0.0.1 0 nosuch.invalid 9\n127.0.0.1 0 127.0.0.1 %d\n" % backend.addr[1])
    s = t.sluice("-c", path)
    check(s.err.find(f"warning: {path}:1: target nosuch.invalid:9: "), s.err.lines)
    served(t, s, s.addrs[1:], backend)


@test()
def addresses_may_be_ipv6_with_or_without_brackets_and_names(t):
    need_ipv6()
    four, six = t.backend(), t.backend(host="::1")
    s = t.sluice("-c", t.file(
        f"::1 0 127.0.0.1 {four.addr[1]}\n[::1] 0 127.0.0.1 {four.addr[1]}\n"
        f"localhost 0 localhost {four.addr[1]}\n127.0.0.1 0 ::1 {six.addr[1]}\n0.0.0.0 0 [::1] {six.addr[1]}\n"))
    by_host = {}
    for host, port in s.addrs:
        by_host.setdefault(host, []).append((host, port))
    equal(len(by_host["0.0.0.0"]), 1, "rules at 0.0.0.0")
    served(t, s, by_host["::1"][:2], four)
    served(t, s, [("127.0.0.1", by_host["0.0.0.0"][0][1]), by_host["127.0.0.1"][-1]], six)


@test()
def a_star_as_address_is_both_families(t):
    need_ipv6()
    backend = t.backend()
    s = t.sluice("-c", t.file("* 0 127.0.0.1 %d\n" % backend.addr[1]))
    equal(sorted(host for host, _ in s.addrs), ["0.0.0.0", "::"], "addresses")
    port = s.addrs[0][1]
    served(t, s, [("127.0.0.1", port), ("::1", port)], backend)


@test()
def a_port_may_be_the_name_of_a_service(t):
    if not os.path.exists("/etc/services"):
        path = t.file("127.0.0.1 0 127.0.0.1 80\n")
    else:
        path = t.file("127.0.0.1 0 127.0.0.1 http\n")
    s = t.sluice("-c", path)
    check(s.err.find("-> 127.0.0.1:80$"), s.err.lines)


@test()
def a_wrong_line_is_named_by_file_and_line_and_nothing_is_started(t):
    for content, line, *words in WRONG:
        path = t.file(content.encode("latin1"))
        status, out, err = t.sluice("-c", path, ready=False, stats=None).result()
        check(status == 1 and not out and len(err) == 1 and f"{path}:{line}: " in err[0] and all(w in err[0] for w in words),
              f"{content!r}: exit {status}, stdout {out!r}, stderr {err}")


@test()
def a_file_without_a_rule_is_refused(t):
    for content in "", "\n", "# nothing\n":
        path = t.file(content)
        status, _, err = t.sluice("-c", path, ready=False).result()
        check(status == 1 and len(err) == 1 and path in err[0] and "no rules" in err[0], f"exit {status}, {err}")


@test()
def a_thousand_rules_are_read(t):
    backend = t.backend()
    s = t.sluice("-c", t.file("127.0.0.1 0 127.0.0.1 %d\n" % backend.addr[1] * 1000))
    equal(len(set(s.addrs)), 1000, "rules")
    served(t, s, s.addrs[::111], backend)


if __name__ == "__main__":
    run()
