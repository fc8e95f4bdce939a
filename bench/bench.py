#!/usr/bin/env python3
"""Compares Envoy with Tidegate to Envoy with what one would use instead, on one machine. Start it with `make bench`.

Within a round every variant is measured once in every setting, in an order that is drawn anew, so that what else
the machine does at a time strikes all alike. README.md in this folder says what is measured and how.
"""

import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import report
import variants
from fleet import COMPANION, ENVOY, LOAD, VALKEY, fleet
from processes import ROOT, BenchError

QUICK = os.environ.get("BENCH_QUICK") == "1"


def number(name, usual, quick):
    text = os.environ.get(name) or str(quick if QUICK else usual)
    if not text.isdigit() or int(text) == 0:
        raise BenchError(f"{name}: {text!r} is not a number of 1 or more")
    return int(text)


def main():
    settings = {
        "rounds": number("BENCH_ROUNDS", 5, 1),
        "seconds": number("BENCH_SECONDS", 4, 1),
        "rate": number("BENCH_RATE", 2000, 500),
    }
    out = Path(os.environ.get("BENCH_OUT") or default_out()).absolute()
    for path, remedy in [(ENVOY, "make tools"), (VALKEY, "make tools"), (COMPANION, "make build"),
                         (variants.WASM, "make build"), (variants.NOOP, "make bench"), (LOAD, "make bench")]:
        if not path.exists():
            raise BenchError(f"{path} is missing; run `{remedy}`")
    begun = time.time()
    folder = Path(tempfile.mkdtemp(prefix="tidegate-bench-"))
    # Errors quote the logs, so nothing in the folder is needed afterwards.
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        samples = [measure_round(folder, number, settings) for number in range(settings["rounds"])]
    samples = [sample for of_round in samples for sample in of_round]
    report.write(out, samples, settings, begun)
    say(f"\n{(out / 'results.md').read_text()}\nWritten to {out}")


def default_out():
    # What a quick run says is that the benchmark works; it is no result to keep.
    if QUICK:
        return ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "bench-quick"
    return ROOT / "bench/results"


def measure_round(folder, number, settings):
    samples = []
    seconds, rounds = settings["seconds"], settings["rounds"]
    draw = random.Random(number)
    with fleet(folder) as targets:
        for route in variants.ROUTES:
            for keys in variants.KEYS:
                say(f"round {number + 1} of {rounds}: {route}, {keys} key{'s' if keys > 1 else ''}")
                # First, what compilers and caches do only once. Many keys have to be seen before they are known.
                for target in targets:
                    target.closed(route, keys, max(1, seconds // (2 if keys > 1 else 4)), number + 1000)
                for kind in ("closed", "open"):
                    for target in draw.sample(targets, len(targets)):
                        if kind == "closed":
                            measured = target.closed(route, keys, seconds, number)
                        else:
                            measured = target.open(route, keys, seconds, number, settings["rate"])
                        samples.append({"round": number, "route": route, "keys": keys, "kind": kind,
                                        "variant": target.variant.slug, **measured})
    return samples


def say(text):
    print(text, flush=True)


def end(_number, _frame):
    raise KeyboardInterrupt


if __name__ == "__main__":
    # So that `kill` ends the benchmark like Ctrl-C does: with what it has started.
    signal.signal(signal.SIGTERM, end)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("bench: interrupted")
    except BenchError as error:
        sys.exit(f"bench: {error}")
