#!/usr/bin/env python3
"""Compares Envoy with Tidegate to Envoy with what one would use instead, on one machine. Start it with `make bench`.

Within a round every variant is measured once in every setting, in an order that is drawn anew, so that what else
the machine does at a time strikes all alike. README.md in this folder says what is measured and how.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import plot
import report
import variants
from fleet import COMPANION, ENVOY, LOAD, VALKEY, fleet
from processes import ROOT, BenchError
from results import SWEEP, SWEPT, Results

QUICK = os.environ.get("BENCH_QUICK") == "1"


def number(name, usual, quick):
    text = os.environ.get(name) or str(quick if QUICK else usual)
    if not text.isdigit() or int(text) == 0:
        raise BenchError(f"{name}: {text!r} is not a number of 1 or more")
    return int(text)


def main():
    run = {
        "rounds": number("BENCH_ROUNDS", 7, 1),
        "seconds": number("BENCH_SECONDS", 2, 1),
        "rate": number("BENCH_RATE", 2000, 500),
        "connections": number("BENCH_CONNECTIONS", 64, 64),
    }
    out = Path(os.environ.get("BENCH_OUT") or default_out()).absolute()
    for path, remedy in [(ENVOY, "make tools"), (VALKEY, "make tools"), (COMPANION, "make build"),
                         (variants.WASM, "make build"), (variants.NOOP, "make bench"), (LOAD, "make bench")]:
        if not path.exists():
            raise BenchError(f"{path} is missing; run `{remedy}`")
    # Before anything is measured: the tree may change meanwhile, the programs do not.
    facts = report.machine(run)
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="tidegate-bench-"))
    # Errors quote the logs, so nothing in the folder is needed afterwards.
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        samples = [measure_round(folder, number, run) for number in range(run["rounds"])]
    samples = [sample for of_round in samples for sample in of_round]
    facts["Measured"] += f"; {(time.monotonic() - begun) / 60:.0f} minutes in all"
    write(out, samples, run, facts)


def default_out():
    # What a quick run says is that the benchmark works; it is no result to keep.
    if QUICK:
        return ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "bench-quick"
    return ROOT / "bench/results"


def measure_round(folder, number, run):
    samples = []
    seconds, rounds = run["seconds"], run["rounds"]
    draw = random.Random(number)
    # Envoy tells its port in a file, which must not be there from the round before.
    folder = folder / str(number)
    folder.mkdir()
    with fleet(folder, run) as targets:
        for route in variants.ROUTES:
            for keys in variants.KEYS:
                say(f"round {number + 1} of {rounds}: {route}, {keys} key{'s' if keys > 1 else ''}")
                compared = [target for target in targets if target.variant not in variants.PARTS]
                for target in draw.sample(compared, len(compared)):
                    if warm_up := warm_up_seconds(keys):
                        target.closed(route, keys, warm_up, number + 1000)
                    for measure in (target.closed, target.open):
                        measured = measure(route, keys, seconds, number)
                        samples.append({"round": number, "route": route, "keys": keys,
                                        "variant": target.variant.slug, **measured})
        say(f"round {number + 1} of {rounds}: parts, and fewer connections")
        for target in (target for target in targets if target.variant in variants.PARTS):
            if not QUICK:
                target.closed("direct", 1, warm_up_seconds(1), number + 1000)
            measured = target.closed("direct", 1, seconds, number)
            samples.append({"round": number, "route": "direct", "keys": 1, "variant": target.variant.slug, **measured})
        swept = [(target, connections) for target in targets if target.variant.slug in SWEPT for connections in SWEEP]
        for target, connections in draw.sample(swept, len(swept)):
            measured = target.sweep("direct", 1, seconds, number, connections)
            samples.append({"round": number, "route": "direct", "keys": 1, "variant": target.variant.slug, **measured})
    return samples


def warm_up_seconds(keys):
    """For what is done only once: by compilers, by leases that grow with the demand, by the first request of a key."""
    if QUICK:
        return 0
    return 1 if keys == 1 else 4


def write(out, samples, run, facts):
    out.mkdir(parents=True, exist_ok=True)
    results = Results(samples)
    where = f"{facts['CPU']}{'' if results.is_quiet() else ', not quiet'}."
    texts = {
        "results.json": json.dumps({"machine": facts, "run": run, "samples": samples}, indent=0) + "\n",
        "results.md": report.markdown(results, facts, run),
        "throughput.svg": plot.throughput(results, where),
        "cpu.svg": plot.cpu(results, where),
        "latency.svg": plot.latency(results, where, run["rate"]),
    }
    for name, text in texts.items():
        (out / name).write_text(text)
    say(f"\n{texts['results.md']}\nWritten to {out}")


def say(text):
    print(text, flush=True)


def end(_number, _frame):
    raise KeyboardInterrupt


if __name__ == "__main__":
    # So that `kill` ends the benchmark like Ctrl-C does: with what it has started. Ctrl-C's signal is taken over
    # too, for shells have background jobs ignore it.
    for number_of_signal in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number_of_signal, end)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted")
    except BenchError as error:
        sys.exit(f"bench: {error}")
