#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is installed: its files, the parts that packages take, and programs built with pkg-config against it.

usage: install.py SLUICE [PART-OF-A-NAME], with $MESON, $BUILD (the build directory), $CC, $CXX (empty if there is no C++)
and $SANITIZE (as -Db_sanitize=)
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "daemon"))

from kit import check, equal, run, test  # noqa: E402

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic-errors"]
MAP = os.path.join(HERE, "..", "..", "src", "sluice.map")
PROGRAM = os.path.join(HERE, "program.c")
EXAMPLE = os.path.join(HERE, "..", "embed", "forward.c")


def output(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, **options)
    check(not done.returncode, f"{' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Installed:
    """A directory into which all of it, or what has @tags, is installed."""

    def __init__(self, t, tags=None):
        self.root, self.scratch = t.folder(), t.folder()
        output(*os.environ["MESON"].split(), "install", "-C", os.environ["BUILD"], "--no-rebuild", "--quiet",
               "--destdir", self.root, *(["--tags", tags] if tags else []))

    def files(self):
        """{name without its folder: path}; links are files, too."""
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(self.root) for name in names]
        found = {os.path.basename(path): path for path in paths}
        equal(len(found), len(paths), "names of files")
        return found

    def folder_of(self, name):
        return os.path.dirname(self.files()[name])

    def pkg_config(self, *words):
        env = {**os.environ, "PKG_CONFIG_LIBDIR": self.folder_of("sluice.pc"), "PKG_CONFIG_SYSROOT_DIR": self.root,
               "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1", "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1", "PKG_CONFIG_PATH": ""}
        return output("pkg-config", *words, "sluice", env=env).split()

    def build(self, source, *options, compiler="CC"):
        """Return: the program."""
        sanitize = os.environ["SANITIZE"]
        program = os.path.join(self.scratch, "program")
        output(*os.environ[compiler].split(), *STRICT, *options, "-o", program, source,
               *self.pkg_config("--cflags", "--libs"), *([f"-fsanitize={sanitize}"] if sanitize != "none" else []))
        return program

    def run(self, *words):
        return output(*words, env={**os.environ, "LD_LIBRARY_PATH": self.folder_of("libsluice.so")}, timeout=60)


def version():
    return output(sys.argv[1], "--version").split()[1]


def dynamic(path, tag):
    return re.findall(rf"\({tag}\).*\[(.*)\]", output("readelf", "-d", path))


def parts():
    """{tag: the files that it takes}."""
    v = version()
    return {"runtime": {"sluice", f"libsluice.so.{v}", f"libsluice.so.{v.split('.')[0]}"},
            "devel": {"libsluice.so", "sluice.h", "sluice.pc"},
            "man": {"sluice.3", "sluice.8"}}


@test(limit=60)
def these_files_are_installed_and_no_others(t):
    there = Installed(t)
    equal(set(there.files()), set.union(*parts().values()), "files")
    equal(os.path.basename(there.folder_of("sluice")), "bin", "the folder of the program")
    equal(os.path.basename(there.folder_of("sluice.8")), "man8", "the folder of sluice(8)")
    equal(os.path.basename(there.folder_of("sluice.3")), "man3", "the folder of sluice(3)")
    output(there.files()["sluice"], "--version")


@test(limit=60)
def each_tag_takes_its_part(t):
    for tag, files in parts().items():
        equal(set(Installed(t, tag).files()), files, f"files of {tag}")


@test(limit=60)
def the_version_is_the_same_everywhere(t):
    there, v = Installed(t), version()
    soname = f"libsluice.so.{v.split('.')[0]}"
    files = there.files()
    equal(there.pkg_config("--modversion"), [v], "version in sluice.pc")
    equal(dynamic(files[f"libsluice.so.{v}"], "SONAME"), [soname], "soname")
    equal(os.readlink(files[soname]), f"libsluice.so.{v}", "the link of the soname")
    equal(os.path.realpath(files["libsluice.so"]), files[f"libsluice.so.{v}"], "what the compiler links")
    needed = dynamic(there.build(PROGRAM), "NEEDED")
    check(soname in needed, f"a program needs {needed}, and not {soname}")


@test(limit=60)
def a_program_needs_no_other_package(t):
    equal(Installed(t).pkg_config("--print-requires", "--print-requires-private"), [], "packages that sluice.pc requires")


@test(limit=60)
def the_library_exports_the_header_and_nothing_else(t):
    files = Installed(t).files()
    output(sys.executable, os.path.join(HERE, "symbols.py"), files["libsluice.so"], MAP, files["sluice.h"],
           version().split(".")[0])


@test(limit=120)
def programs_build_with_pkg_config_and_run(t):
    there = Installed(t)
    there.run(there.build(os.path.join(HERE, "header.c"), "-std=c99"))
    there.run(there.build(PROGRAM))
    there.build(EXAMPLE)
    if os.environ["CXX"]:
        there.run(there.build(os.path.join(HERE, "header.cc"), "-std=c++11", compiler="CXX"))


def header_with(there, change):
    """Return: the options for a compiler to take the header with its structs as @change makes them. @change gets a
    struct's name and the lines of its members."""
    with open(there.files()["sluice.h"]) as f:
        text = f.read()
    text, structs = re.subn(r"^struct (\w+) \{\n(.*?)^\};", lambda m: "struct %s {\n%s};" % (
        m[1], "".join(change(m[1], m[2].splitlines(True)))), text, flags=re.M | re.S)
    text, macros = re.subn(r"^#define (SLUICE_(\w+)_INIT)\b.*?[^\\]\n", lambda m: "#define %s { sizeof(struct sluice_%s) }\n" % (
        m[1], m[2].lower()), text, flags=re.M | re.S)
    equal((structs, macros), (3, 3), "structs and initializers of the header")
    with open(os.path.join(there.scratch, "sluice.h"), "w") as f:
        f.write(text)
    return ["-I", there.scratch, "-Wno-missing-field-initializers"]


def sizes(there, *options):
    """Return: those of the three structs, of a program that works."""
    return [int(size) for size in there.run(there.build(PROGRAM, *options)).split()]


@test(limit=60)
def a_program_of_an_older_header_works(t):
    there = Installed(t)
    now = sizes(there)
    # Not the last alone of these: that would leave padding in its place.
    less = {"sluice_relay_options": 2}
    older = sizes(there, *header_with(there, lambda name, members: members[:-less.get(name, 1)]))
    check(all(old < size for old, size in zip(older, now)), f"sizes of the older structs: {older}, not less than {now}")


@test(limit=60)
def a_program_of_a_newer_header_works(t):
    there = Installed(t)
    now = sizes(there)
    newer = sizes(there, "-DNEWER", *header_with(there, lambda name, members: members + ["\tuint64_t newer[4];\n"]))
    equal(newer, [size + 32 for size in now], "sizes of the newer structs")


run()
