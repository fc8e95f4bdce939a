"""The Markdown of a run: the machine, the targets, and a table for each setting."""

import os
import platform
import shlex
import subprocess
import time
from pathlib import Path

import variants
from fleet import ENVOY, VALKEY
from processes import CPUS, ENVOY_CPUS, OTHER_CPUS, ROOT
from results import LIKENED, SWEEP, SWEPT, TARGETS, setting_name, settings

VARIABLES = ("BENCH_QUICK", "BENCH_ROUNDS", "BENCH_SECONDS", "BENCH_RATE", "BENCH_CONNECTIONS")


def machine(run):
    """What somebody needs to know to compare these figures with their own."""
    command = [f"{name}={shlex.quote(os.environ[name])}" for name in VARIABLES if name in os.environ]
    return {
        "CPU": f"{cpu_model()}, {len(CPUS)} cores",
        "Kernel": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "Envoy": f"{version(ENVOY, 'version: ')}, `--concurrency 1`, on core {numbers(ENVOY_CPUS)}",
        "Everything else": f"load, upstream, companion and store on core {numbers(OTHER_CPUS)}",
        "Store": f"Valkey {version(VALKEY, 'v=')}, without persistence",
        "Date": time.strftime("%Y-%m-%d, %H:%M UTC", time.gmtime()),
        "Commit": commit(),
        "Command": f"`{' '.join([*command, 'make bench'])}`",
        "Measured": f"{run['rounds']} rounds; in each, {run['seconds']} s for every variant, setting and kind of load, "
                    f"over {run['connections']} connections",
    }


def cpu_model():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def version(program, before):
    text = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    # Envoy's is a commit, a version and how it was built.
    words = text.partition(before)[2].split()[0].split("/")
    return words[1] if len(words) > 1 else words[0]


def commit():
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    # Results that an earlier run has left are no change of what is measured.
    changed = git("status", "--porcelain", "--", ".", ":!bench/results")
    return f"`{git('rev-parse', '--short=12', 'HEAD') or 'unknown'}`" + (", with changes" if changed else "")


def numbers(cpus):
    return ", ".join(map(str, cpus))


def markdown(results, facts, run):
    lines = ["# Benchmark results", "", "What is measured, and how, is in [the folder's README](../README.md).", ""]
    if not results.is_quiet():
        lines += ["**The machine was not quiet.** Of these figures believe the ratios of CPU times, roughly, and "
                  "nothing else.", ""]
    lines += ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts.items())]
    foreign = results.foreign()
    lines += [f"| Other programs | took {foreign[len(foreign) // 2]:.0%} of the machine in the median measurement, "
              f"{foreign[-1]:.0%} in the worst |", ""]
    lines += ["## Targets", "", *targets(results), ""]
    lines += ["## Connections", "", *sweep(results, run), ""]
    lines += ["## Where the time goes", "", *parts(results), ""]
    lines += ["![Throughput](throughput.svg)", "", "![CPU time a request](cpu.svg)", "", "![Latency](latency.svg)"]
    for route, keys in settings():
        lines += ["", f"## {setting_name(route, keys)}", "", *table(results, route, keys, run["rate"])]
    return "\n".join(lines) + "\n"


def targets(results):
    yield "A ratio of throughputs, of medians; in brackets the same by Envoy's CPU time a request."
    yield ""
    yield "| target, with one hot key | measured | holds | with 100,000 keys |"
    yield "|---|---|---|---|"
    for slug, to, route, least in TARGETS:
        one, many = ((results.ratio("per_second", route, keys, slug, to),
                      1 / results.ratio("envoy_cpu_us", route, keys, slug, to)) for keys in variants.KEYS)
        yield (f"| {names()[slug]} ≥ {least} × {names()[to]}, {route} | {one[0]:.2f} ({one[1]:.2f}) | "
               f"{'yes' if one[0] >= least else '**no**'} | {many[0]:.2f} ({many[1]:.2f}) |")


    yield ""
    yield ("Like with like, as throughput and in brackets by Envoy's CPU time: native without fields beside Tidegate "
           "without fields, native by key and with fields beside Tidegate as it comes.")
    yield ""
    yield "| | with one hot key | with 100,000 keys |"
    yield "|---|---|---|"
    for slug, to, route in LIKENED:
        one, many = (f"{results.ratio('per_second', route, keys, slug, to):.2f} "
                     f"({1 / results.ratio('envoy_cpu_us', route, keys, slug, to):.2f})" for keys in variants.KEYS)
        yield f"| {names()[slug]} / {names()[to]}, {route} | {one} | {many} |"


def sweep(results, run):
    yield ("With one hot key and a direct response, over fewer connections. Where many requests wait at once, `exact` "
           "asks for all of them in one call, and comes nearer.")
    yield ""
    yield "| connections | " + " | ".join(f"`{slug}`, requests/s" for slug in SWEPT) + " | ratio |"
    yield "|--:|--:|--:|--:|"
    rows = [(count, [results.swept(slug, count) for slug in SWEPT]) for count in SWEEP]
    rows.append((run["connections"], [results.median("per_second", "direct", 1, slug) for slug in SWEPT]))
    for count, (first, second) in rows:
        yield f"| {count} | {first:,.0f} | {second:,.0f} | {first / second:.2f} |"


# What each has on top of the one before it.
PARTS = [
    ("none", ""),
    ("native", "Envoy's own filter, one bucket, no fields"),
    ("noop", "crossing into a module that does nothing, for every callback that the SDK exports"),
    ("unlimited", "four callbacks instead of all, the filter's own contexts, the time"),
    ("lease_bare", "the header, the key, the worker's slice, a counter"),
    ("lease", "two fields in the response, and whether upstream has set them"),
    ("local", "in place of the slice: a slot read from shared data and one written"),
    ("exact", "a callout, shared by the requests that wait at the time"),
]


def parts(results):
    yield "Envoy's CPU time a request, direct response, one hot key: medians."
    yield ""
    yield "| | µs | over no filter | what that is |"
    yield "|---|--:|--:|---|"
    base = results.median("envoy_cpu_us", "direct", 1, "none")
    for slug, what in PARTS:
        micros = results.median("envoy_cpu_us", "direct", 1, slug)
        yield f"| {names()[slug]} | {micros:.1f} | {micros - base:.1f} | {what} |"


def names():
    return {variant.slug: variant.name for variant in variants.ALL}


def table(results, route, keys, rate):
    yield (f"| | requests/s | lowest–highest | of native | CPU µs: Envoy | companion | store | "
           f"p50 ms at {rate:,}/s | p95 | p99 |")
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for variant in variants.COMPARED:
        slug = variant.slug
        per_second = results.values("per_second", route, keys, slug)
        cpu = results.cpu(route, keys, slug)
        cells = [
            variant.name,
            f"{results.median('per_second', route, keys, slug):,.0f}",
            f"{min(per_second):,.0f}–{max(per_second):,.0f}",
            f"{results.ratio('per_second', route, keys, slug, 'native'):.2f}",
            *(f"{cpu[name]:.1f}" if name in cpu else "" for name in ("envoy", "companion", "store")),
            *(f"{results.median(f'p{percent}_us', route, keys, slug) / 1000:.2f}" for percent in (50, 95, 99)),
        ]
        yield "| " + " | ".join(cells) + " |"
