"""What is compared: Envoys that differ in one HTTP filter, and what proves that this filter has decided."""

import json

from processes import ROOT, BenchError

WASM = ROOT / "dist/tidegate.wasm"
NOOP = ROOT / "dist/bench/noop.wasm"

# The columns of a comparison: what answers, and how many clients there are.
ROUTES = ("direct", "proxied")
KEYS = (1, 100_000)

TYPE = "type.googleapis.com/envoy.extensions.filters"

# Never reached, so that everything compared does the work of admitting. An hourly limit, as APIs have them, gives
# leases of ten seconds.
TOKENS = 1_000_000_000
PLUGIN = {
    # No deadline is to pass: a request that timed out would be let through unchecked.
    "companion": {"cluster": "tidegate", "timeout": "5s"},
    "policies": [{
        "name": "bench",
        "key": [{"header": "x-api-key"}],
        "limit": {"token_bucket": {"capacity": TOKENS, "rate": f"{TOKENS}/h"}},
    }],
}


class Variant:
    """An Envoy without a filter, and what the others are made from."""

    name = "no filter"
    slug = "none"
    needs_companion = False
    # A field that every answer has.
    field = None

    def filters(self):
        return []

    def per_route(self, _keys):
        return {}

    def check(self, _before, _after, _requests):
        """Raises an error unless the counters show that the filter has decided all requests."""


class Native(Variant):
    """Envoy's own filter: one bucket for everybody, or, with many keys, one for each value of the header.

    Likened to Tidegate it has a bucket for each value in any case, and writes fields into responses.
    """

    name = "native local_ratelimit"
    slug = "native"

    def __init__(self, is_likened=False):
        self.is_likened = is_likened
        if is_likened:
            self.name, self.slug, self.field = "native, by key, fields", "native_likened", "x-ratelimit-limit"

    def filters(self):
        return [{"name": "envoy.filters.http.local_ratelimit",
                 "typed_config": {"@type": f"{TYPE}.http.local_ratelimit.v3.LocalRateLimit", "stat_prefix": "off"}}]

    def per_route(self, keys):
        always = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
        bucket = {"max_tokens": TOKENS, "tokens_per_fill": TOKENS, "fill_interval": "3600s"}
        config = {
            "@type": f"{TYPE}.http.local_ratelimit.v3.LocalRateLimit",
            "stat_prefix": "bench",
            "token_bucket": bucket,
            "filter_enabled": always,
            "filter_enforced": always,
        }
        if self.is_likened:
            config["enable_x_ratelimit_headers"] = "DRAFT_VERSION_03"
        if keys > 1 or self.is_likened:
            # An entry without a value makes a bucket for each value; the default is to keep 20 of them.
            action = {"request_headers": {"header_name": "x-api-key", "descriptor_key": "api_key"}}
            config |= {
                "descriptors": [{"entries": [{"key": "api_key"}], "token_bucket": bucket}],
                "rate_limits": [{"actions": [action]}],
                "max_dynamic_descriptors": max(keys, 20),
                "always_consume_default_token_bucket": False,
            }
        return {"envoy.filters.http.local_ratelimit": config}

    def check(self, before, after, requests):
        def grown(name):
            return difference(before, after, f"bench.http_local_rate_limit.{name}")
        if grown("ok") < requests or grown("rate_limited") > 0:
            raise BenchError(f"local_ratelimit admitted {grown('ok')} and refused {grown('rate_limited')} "
                             f"of {requests} requests")


class Wasm(Variant):
    """A filter that is a module."""

    module = NOOP

    def __init__(self, name, slug):
        self.name, self.slug = name, slug

    def configuration(self):
        return ""

    def filters(self):
        configuration = {"@type": "type.googleapis.com/google.protobuf.StringValue",
                         "value": self.configuration()}
        code = {"local": {"filename": str(self.module)}}
        vm = {"vm_id": self.slug, "runtime": "envoy.wasm.runtime.v8", "code": code}
        config = {"name": self.slug, "root_id": self.slug, "vm_config": vm, "configuration": configuration}
        return [{"name": self.slug,
                 "typed_config": {"@type": f"{TYPE}.http.wasm.v3.Wasm", "config": config}}]

    def check(self, before, after, _requests):
        if after.get("wasm.envoy.wasm.runtime.v8.active", 0) == 0:
            raise BenchError(f"{self.name}: no VM is active")


class Tidegate(Wasm):
    """The filter, and the companion with its store where the mode has one."""

    module = WASM
    field = "ratelimit"

    def __init__(self, sync, has_fields=True):
        super().__init__(f"Tidegate, {sync}", sync)
        if not has_fields:
            self.name, self.slug, self.field = f"{self.name}, no fields", f"{sync}_bare", None
        self.sync, self.has_fields = sync, has_fields
        self.needs_companion = sync != "local"

    def configuration(self):
        policies = [policy | {"sync": self.sync} for policy in PLUGIN["policies"]]
        config = PLUGIN | {"policies": policies}
        if not self.has_fields:
            config["headers"] = []
        if not self.needs_companion:
            del config["companion"]
        return json.dumps(config)

    def check(self, before, after, requests):
        super().check(before, after, requests)
        def grown(name):
            return difference(before, after, f"wasmcustom.tidegate.{name}")
        others = {name: grown(f"policy.bench.{name}") for name in ("refused", "unprotected", "unavailable")}
        if grown("policy.bench.admitted") < requests or any(others.values()):
            raise BenchError(f"{self.name}: admitted {grown('policy.bench.admitted')} of {requests} requests; {others}")
        if self.needs_companion and grown("callouts_failed") > 0:
            raise BenchError(f"{self.name}: {grown('callouts_failed')} calls to the companion have failed")
        if self.sync == "exact" and grown("waits") < requests:
            raise BenchError(f"{self.name}: of {requests} requests only {grown('waits')} have asked")


def difference(before, after, name):
    return after.get(name, 0) - before.get(name, 0)


class Unlimited(Tidegate):
    """The filter with a policy that counts nothing: what it costs to be there."""

    def __init__(self):
        super().__init__("local", has_fields=False)
        self.name, self.slug = "Tidegate, unlimited", "unlimited"

    def configuration(self):
        return json.dumps({"policies": [{"name": "bench", "limit": "unlimited"}]})

    def check(self, before, after, requests):
        # It leaves no trace that could be counted.
        Wasm.check(self, before, after, requests)


COMPARED = [
    Variant(),
    Native(),
    Native(is_likened=True),
    Wasm("no-op wasm filter", "noop"),
    Tidegate("local"),
    Tidegate("lease", has_fields=False),
    Tidegate("lease"),
    Tidegate("exact"),
]

# What is measured in one setting only, to see where the time goes.
PARTS = [Unlimited()]
ALL = COMPARED + PARTS


def path(route, keys):
    return f"/{route}/{keys}"


def bootstrap(variant, upstream_port, companion_port):
    """The configuration of an Envoy, which chooses its own ports."""
    manager = {
        "@type": f"{TYPE}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "bench",
        "use_remote_address": True,
        "normalize_path": True,
        "merge_slashes": True,
        "http_filters": [*variant.filters(), {
            "name": "envoy.filters.http.router",
            "typed_config": {"@type": f"{TYPE}.http.router.v3.Router"},
        }],
        "route_config": {"virtual_hosts": [{
            "name": "bench",
            "domains": ["*"],
            "routes": [route(variant, kind, keys) for kind in ROUTES for keys in KEYS],
        }]},
    }
    network_filter = {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}
    listener = {"name": "bench", "address": address(0), "filter_chains": [{"filters": [network_filter]}]}
    clusters = [cluster("upstream", upstream_port)]
    if companion_port:
        options = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
        http2 = {"@type": options, "explicit_http_config": {"http2_protocol_options": {}}}
        clusters.append(cluster("tidegate", companion_port) | {
            "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2},
        })
    return {
        "admin": {"address": address(0)},
        "static_resources": {"listeners": [listener], "clusters": clusters},
    }


def route(variant, kind, keys):
    if kind == "direct":
        action = {"direct_response": {"status": 200, "body": {"inline_string": "ok\n"}}}
    else:
        action = {"route": {"cluster": "upstream"}}
    return {"match": {"path": path(kind, keys)}, **action, "typed_per_filter_config": variant.per_route(keys)}


def cluster(name, port):
    endpoint = {"endpoint": {"address": address(port)}}
    return {
        "name": name,
        "type": "STATIC",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
    }


def address(port):
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}
