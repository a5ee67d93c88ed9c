# SPDX-License-Identifier: MIT
"""Who is measured: sluice in each mode, no forwarder, and others as they come and as an expert sets them."""
import os
import shlex
import shutil
import subprocess

from testbed import Trouble

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROXYD = "/lib/systemd/systemd-socket-proxyd"
NGINX_STREAM = "/usr/lib/nginx/modules/ngx_stream_module.so"

HAPROXY = """global
  nbthread {workers}
  maxconn 4500
%s
defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
%s
listen f
  bind {listen}
  server s {target}
"""
TUNED = HAPROXY % ("  tune.pipesize 1048576\n  tune.bufsize 65536\n  maxpipes 2000",
                   "  option splice-request\n  option splice-response")
NGINX = """load_module %s;
daemon off; worker_processes {workers}; worker_rlimit_nofile 60000;
pid {folder}/nginx-{port}.pid; error_log {folder}/nginx-{port}.err;
events {{ worker_connections 20000; }}
stream {{ server {{ listen {listen} reuseport; proxy_pass {target}; %s }} }}
"""


class Built:
    """Which build of sluice is measured: that of tools/run, until told otherwise."""

    def __init__(self):
        self.use(os.path.join(ROOT, "build-release"))

    def use(self, folder):
        self.sluice = os.path.join(folder, "src", "sluice")
        self.load = os.path.join(folder, "tools", "load", "sluice-load")

    @staticmethod
    def make():
        """With what tools/run builds with, and installs, if anything lacks."""
        run = os.path.join(ROOT, "tools", "run")
        done = subprocess.run([run, "--version"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Trouble(f"cannot build sluice:\n{done.stderr}")

    def take(self, folder):
        """The build that is named, as it is; that of tools/run, made if need be, if none is."""
        if not folder:
            self.make()
            return
        self.use(os.path.abspath(folder))
        for path in (self.sluice, self.load):
            if not os.access(path, os.X_OK):
                raise Trouble(f"{path} is no program that this user may run; "
                              "--build should name a build of sluice")

    def has_uring(self):
        return os.path.exists(self.sluice) and not subprocess.run([self.sluice, "--mode=uring", "--version"],
                                                                  capture_output=True, check=False).returncode


BUILT = Built()


class Contestant:
    """
    name      in tables
    command   with fields {sluice} {listen} {target} {host} {port} {thost} {tport} {workers} {folder} {conf}; None: no forwarder
    conf      what the file {conf} holds, with the same fields
    needs     programs and files without which it cannot run
    uring     whether sluice must have been built with io_uring
    by_name   whether it is measured only if somebody names it
    """

    def __init__(self, name, command, conf="", needs=(), uring=False, by_name=False):
        self.name, self.command, self.conf, self.needs, self.uring = name, command, conf, needs, uring
        self.direct = command is None
        self.by_name = by_name

    def missing(self):
        """What it lacks on this machine, None if nothing."""
        if self.uring and not BUILT.has_uring():
            return "io_uring: meson configure build-release -Dliburing=enabled"
        for need in self.needs:
            if not (os.path.exists(need) if need.startswith("/") else shutil.which(need)):
                return need
        return None

    def argv(self, testbed, target, workers):
        thost, tport = target
        fields = {"sluice": BUILT.sluice, "listen": f"{testbed.outer}:{testbed.port}", "host": testbed.outer,
                  "port": testbed.port, "target": f"{thost}:{tport}", "thost": thost, "tport": tport,
                  "workers": workers, "folder": testbed.folder, "conf": testbed.folder + "/conf"}
        with open(fields["conf"], "w") as f:
            f.write(self.conf.format(**fields))
        os.chmod(fields["conf"], 0o644)
        return shlex.split(self.command.format(**fields))


def sluice(name, *options, by_name=False):
    return Contestant(name, f"{{sluice}} --workers={{workers}} {' '.join(options)} {{listen}} {{target}}",
                      uring="--mode=uring" in options, by_name=by_name)


def socat(size, by_name=False):
    return Contestant(f"socat {size // 1024}K", f"socat -b {size} TCP-LISTEN:{{port}},bind={{host}},reuseaddr,fork,"
                      "backlog=1024 TCP:{target}", needs=("socat",), by_name=by_name)


def build_go(folder):
    """Go has no program to call: its io.Copy each way, built for the run."""
    env = dict(os.environ, GO111MODULE="off", GOFLAGS="", GOCACHE=folder + "/go-cache")
    subprocess.run(["go", "build", "-o", folder + "/go-copy", os.path.join(HERE, "copy.go")], check=True, env=env)


OURS = {
    "sluice": sluice("sluice"),
    "again": sluice("sluice again"),
    "splice": sluice("sluice splice", "--mode=splice"),
    "copy": sluice("sluice copy", "--mode=copy"),
    "uring": sluice("sluice uring", "--mode=uring"),
    "own": sluice("sluice own pipes", "--mode=splice", "--pipes=own", by_name=True),
    "asleep": sluice("sluice --busy-poll=off", "--busy-poll=off", by_name=True),
    # Rungs of the ladder of tools/lab, to stand beside those of socat.
    "copy-8k": sluice("sluice copy 8K", "--mode=copy", "--buffer-size=8K", by_name=True),
    "copy-16k": sluice("sluice copy 16K", "--mode=copy", "--buffer-size=16K", by_name=True),
    "copy-64k": sluice("sluice copy 64K", "--mode=copy", "--buffer-size=64K", by_name=True),
    "splice-1m": sluice("sluice splice 1M", "--mode=splice", "--pipe-size=1m", by_name=True),
}
OTHERS = {
    "direct": Contestant("no forwarder", None),
    "haproxy": Contestant("HAProxy", "haproxy -db -f {conf}", HAPROXY % ("", "  option splice-auto"), ("haproxy",)),
    "haproxy-tuned": Contestant("HAProxy tuned", "haproxy -db -f {conf}", TUNED, ("haproxy",)),
    "nginx": Contestant("nginx 16K", "nginx -e {folder}/nginx-{port}.err -c {conf}", NGINX % (NGINX_STREAM, ""),
                        ("nginx", NGINX_STREAM)),
    "nginx-64k": Contestant("nginx 64K", "nginx -e {folder}/nginx-{port}.err -c {conf}",
                            NGINX % (NGINX_STREAM, "proxy_buffer_size 64k;"), ("nginx", NGINX_STREAM)),
    "proxyd": Contestant("socket-proxyd", f"systemd-socket-activate -l {{listen}} {PROXYD} -c 20000 {{target}}",
                         needs=("systemd-socket-activate", PROXYD)),
    "socat-8k": socat(8192),
    "socat-16k": socat(16384, by_name=True),
    "socat-64k": socat(65536),
    "rinetd": Contestant("rinetd", "rinetd -f -c {conf}", "{host} {port} {thost} {tport}\n", ("rinetd",)),
    "go": Contestant("Go io.Copy", "{folder}/go-copy {listen} {target}", needs=("go",)),
}
ALL = {**OURS, **OTHERS}


def versions():
    """What was measured, a line each."""
    asked = {"haproxy": ["haproxy", "-v"], "nginx": ["nginx", "-v"], "socat": ["socat", "-V"], "rinetd": ["rinetd", "-v"],
             "Go": ["go", "version"], "systemd": ["systemctl", "--version"]}
    lines = []
    for name, argv in asked.items():
        if shutil.which(argv[0]):
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            lines += [line for line in (done.stdout + done.stderr).splitlines() if any(c.isdigit() for c in line)][:1]
        else:
            lines.append(f"{name}: not installed")
    return lines
