"""All that a round runs on: an upstream, and an Envoy for each variant, with companion and store where it asks one."""

import contextlib
import json

import variants
from processes import ENVOY_CPUS, ROOT, BenchError, Foreign, free_port, get, output_of, running

ENVOY = ROOT / ".tools/bin/envoy"
VALKEY = ROOT / ".tools/bin/valkey-server"
COMPANION = ROOT / "dist/tidegate"
LOAD = ROOT / "dist/bench/bench-load"
KEYS_LUA = ROOT / "bench/keys.lua"

# How long an answer may take before the run is given up.
PATIENCE_SECONDS = 10


class Target:
    """A variant that is up."""

    def __init__(self, variant, run, admin, port, processes, upstream):
        self.variant, self.run, self.admin, self.port = variant, run, admin, port
        # By name: the Envoy, and the companion and the store where there are some.
        self.processes = processes
        self.upstream = upstream

    def stats(self):
        _, _, body = get(self.admin, "/stats?format=json")
        return {stat["name"]: stat["value"] for stat in json.loads(body)["stats"] if "value" in stat}

    def cpu_seconds(self):
        return {name: process.cpu_seconds() for name, process in self.processes.items()}

    def probe(self, route, keys):
        """One request, whose answer shows that the route and the filter are there."""
        status, fields, body = get(self.port, variants.path(route, keys), {"x-api-key": "probe"})
        field = self.variant.field
        if status != 200 or (field and field not in fields):
            raise BenchError(f"{self.variant.name}: {status} with {', '.join(fields)}: {body}")

    def sweep(self, route, keys, seconds, seed, connections):
        """As `closed`, over another number of connections."""
        return {**self.closed(route, keys, seconds, seed, connections), "kind": "sweep", "connections": connections}

    def closed(self, route, keys, seconds, seed, connections=None):
        """Each connection sends its next request when the one before is answered: how many can be had."""
        url = f"http://127.0.0.1:{self.port}{variants.path(route, keys)}"
        wrk = ["wrk", "--threads", 1, "--connections", connections or self.run["connections"], "--duration", f"{seconds}s",
               "--timeout", f"{PATIENCE_SECONDS}s", "--script", KEYS_LUA, url, "--", keys, seed]
        counted, result = self.measure(wrk)
        requests = counted["requests"]
        if counted["failed"] or counted["not_2xx"] or not requests:
            raise BenchError(f"{self.variant.name} on {url}: {counted}")
        return {"kind": "closed", "per_second": requests / counted["micros"] * 1e6, **result}

    def open(self, route, keys, seconds, seed):
        """Requests come at a fixed rate: how long each takes."""
        command = [LOAD, "open", "--addr", f"127.0.0.1:{self.port}", "--path", variants.path(route, keys),
                   "--connections", self.run["connections"], "--keys", keys, "--seed", seed, "--rate", self.run["rate"],
                   "--seconds", seconds]
        if self.variant.field:
            command += ["--expect", self.variant.field]
        measured, result = self.measure(command)
        return {"kind": "open", **measured, "foreign": result["foreign"]}

    def measure(self, load):
        """What a load counted, and what it cost; an error unless the filter has decided all of it."""
        foreign = Foreign([*self.processes.values(), self.upstream])
        before, cpu_before = self.stats(), self.cpu_seconds()
        counted = output_of(load)
        after, cpu_after = self.stats(), self.cpu_seconds()
        requests = counted["requests"]
        self.variant.check(before, after, requests)
        result = {"foreign": foreign.share()}
        for name in self.processes:
            result[f"{name}_cpu_us"] = (cpu_after[name] - cpu_before[name]) / max(requests, 1) * 1e6
        for name in ("callouts", "evictions"):
            counter = f"wasmcustom.tidegate.{name}"
            if counter in after:
                result[f"{name}_per_request"] = variants.difference(before, after, counter) / max(requests, 1)
        return counted, result


@contextlib.contextmanager
def fleet(folder, run):
    """Fresh processes, so that no round inherits how the memory of another one happened to be laid out."""
    with contextlib.ExitStack() as stack:
        upstream = stack.enter_context(running("upstream", [LOAD, "upstream"], folder))
        upstream_port = upstream.until("port", lambda: int(upstream.log.read_text()))
        yield [start(stack, folder, variant, run, upstream, upstream_port) for variant in variants.ALL]


def start(stack, folder, variant, run, upstream, upstream_port):
    others, companion_port = {}, None
    if variant.needs_companion:
        others, companion_port = start_companion(stack, folder, variant.slug)
    config, address = folder / f"{variant.slug}.json", folder / f"{variant.slug}.admin"
    config.write_text(json.dumps(variants.bootstrap(variant, upstream_port, companion_port)))
    # Envoys on one machine would share memory for hot restart, which a benchmark has no use for.
    command = [ENVOY, "--config-path", config, "--admin-address-path", address, "--disable-hot-restart",
               "--concurrency", 1, "--log-level", "warn"]
    envoy = stack.enter_context(running(variant.slug, command, folder, ENVOY_CPUS))
    admin = envoy.until("admin address", lambda: int(address.read_text().rpartition(":")[2]))
    envoy.until("readiness", lambda: get(admin, "/ready")[0] == 200)
    _, _, body = get(admin, "/listeners?format=json")
    port = json.loads(body)["listener_statuses"][0]["local_address"]["socket_address"]["port_value"]
    target = Target(variant, run, admin, port, {"envoy": envoy, **others}, upstream)
    for route in variants.ROUTES:
        for keys in variants.KEYS:
            target.probe(route, keys)
    return target


def start_companion(stack, folder, slug):
    store_port, port = free_port(), free_port()
    command = [VALKEY, "--bind", "127.0.0.1", "--port", store_port, "--save", "", "--appendonly", "no",
               "--dir", folder]
    store = stack.enter_context(running(f"{slug}-valkey", command, folder))
    # Overloaded is not failed: what has to wait here is measured, and not cut off.
    command = [COMPANION, "serve", "--listen", f"127.0.0.1:{port}", "--store", f"redis://127.0.0.1:{store_port}",
               "--store-timeout", "4s"]
    companion = stack.enter_context(running(f"{slug}-companion", command, folder))
    companion.until("readiness", lambda: get(port, "/readyz")[0] == 200)
    return {"companion": companion, "store": store}, port
