"""The processes of a benchmark: started on processors of their own, asked for their CPU time, ended by their id."""

import contextlib
import ctypes
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 30
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

# From prctl(2).
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)

CPUS = sorted(os.sched_getaffinity(0))
# Envoy has a processor for itself, where there are two; all others share the rest. Otherwise the scheduler would
# decide anew in every measurement how often they disturb each other.
ENVOY_CPUS = CPUS[:1]
OTHER_CPUS = CPUS[1:] or CPUS


class BenchError(Exception):
    """A run that measured something else than it says; the text is for the person who started it."""


class Process:
    """A running program and the file that it prints into."""

    def __init__(self, name, command, folder, cpus):
        self.name = name
        self.log = folder / f"{name}.log"
        with open(self.log, "wb") as log:
            self.popen = subprocess.Popen(
                [str(part) for part in command],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: bind(cpus),
                # A group of its own: Ctrl-C reaches the benchmark alone, which then ends them in order.
                start_new_session=True,
            )

    def cpu_seconds(self):
        """The CPU time of all threads so far, in user and in kernel mode."""
        fields = Path(f"/proc/{self.popen.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def until(self, what, check):
        """What `check` returns, as soon as that is something."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.popen.poll() is not None:
                raise BenchError(f"{self.name} ended with {self.popen.returncode}:\n{self.last_words()}")
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                if found := check():
                    return found
            time.sleep(0.02)
        raise BenchError(f"{self.name}: no {what} within {START_SECONDS} s:\n{self.last_words()}")

    def last_words(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])

    def end(self):
        self.popen.terminate()
        try:
            self.popen.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


def bind(cpus):
    """Runs in the new process: it stays on these processors, and dies with the benchmark however that ends."""
    os.sched_setaffinity(0, cpus)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def running(name, command, folder, cpus=None):
    process = Process(name, command, folder, cpus or OTHER_CPUS)
    try:
        yield process
    finally:
        process.end()


def output_of(command):
    """Runs a load to its end and returns the JSON of its last line."""
    command = [str(part) for part in command]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: bind(OTHER_CPUS), start_new_session=True,
    )
    try:
        out, errors = process.communicate()
    finally:
        # Does nothing to one that has ended.
        process.kill()
    if process.returncode:
        raise BenchError(f"{' '.join(command)}\nended with {process.returncode}: {errors}")
    return json.loads(out.splitlines()[-1])


class Foreign:
    """How much of the machine's time others than the given processes and the loads take."""

    def __init__(self, processes):
        self.processes = processes
        self.start = self.now()

    def now(self):
        # All time and that of nobody. What runs in interrupts cannot be told apart, and counts as ours.
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        user, nice, system, _idle, _iowait, _irq, _softirq, steal = fields
        loads = resource.getrusage(resource.RUSAGE_CHILDREN)
        ours = sum(process.cpu_seconds() for process in self.processes) + loads.ru_utime + loads.ru_stime
        return sum(fields) / TICKS_PER_SECOND, (user + nice + system + steal) / TICKS_PER_SECOND - ours

    def share(self):
        (all_before, foreign_before), (all_after, foreign_after) = self.start, self.now()
        return max(0, foreign_after - foreign_before) / max(all_after - all_before, 1 / TICKS_PER_SECOND)


def free_port():
    """A port below those of outgoing connections, so that no client takes it before its server does."""
    for port in range(12_000 + os.getpid() % 1_000 * 20, 32_000):
        if port not in free_port.given:
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                free_port.given.add(port)
                return port
    raise BenchError("no free port")


free_port.given = set()


def get(port, path, headers=None):
    """The status, the header fields and the body of an answer, whatever its status is."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection):
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
