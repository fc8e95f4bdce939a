"""What was measured, reduced to medians over the rounds, and the project's targets for them."""

import statistics

import variants

# A target is a ratio of throughputs with one hot key; what many keys do to it is told beside it.
TARGETS = [
    ("lease", "native", "direct", 0.75),
    ("lease", "native", "proxied", 0.9),
    ("lease", "exact", "direct", 3),
]


# Comparisons of like with like: as much decided, and as much told.
LIKENED = [
    ("lease_bare", "native", "direct"),
    ("lease_bare", "native", "proxied"),
    ("lease", "native_likened", "direct"),
    ("lease", "native_likened", "proxied"),
]

# Variants whose throughput is also measured over fewer connections: where many requests wait at once, `exact` asks
# for all of them in one call.
SWEPT = ("lease", "exact")
SWEEP = (1, 4, 16)

# Beyond this share of the machine, what other programs took is more than noise.
QUIET = 0.05


class Results:
    """The samples of a run: one for each round, setting, variant and kind of load."""

    def __init__(self, samples):
        self.samples = samples

    def values(self, field, route, keys, slug):
        setting = (route, keys, slug)
        return [sample[field] for sample in self.samples
                if sample["kind"] != "sweep" and field in sample and (sample["route"], sample["keys"], sample["variant"]) == setting]

    def median(self, field, route, keys, slug):
        """The median over the rounds; None where the variant has no such figure."""
        values = self.values(field, route, keys, slug)
        return statistics.median(values) if values else None

    def ratio(self, field, route, keys, slug, to):
        """Always of two medians of one run, whose rounds were interleaved."""
        return self.median(field, route, keys, slug) / self.median(field, route, keys, to)

    def swept(self, slug, connections):
        """The median throughput over so many connections."""
        return statistics.median(sample["per_second"] for sample in self.samples
                                 if (sample["kind"], sample["variant"], sample.get("connections"))
                                 == ("sweep", slug, connections))

    def cpu(self, route, keys, slug):
        """Microseconds of CPU time a request, by process."""
        parts = {name: self.median(f"{name}_cpu_us", route, keys, slug) for name in ("envoy", "companion", "store")}
        return {name: value for name, value in parts.items() if value is not None}

    def foreign(self):
        """How much of the machine other programs took in each measurement, from 0 to 1."""
        return sorted(sample["foreign"] for sample in self.samples)

    def is_quiet(self):
        return statistics.median(self.foreign()) <= QUIET


def settings():
    return [(route, keys) for route in variants.ROUTES for keys in variants.KEYS]


def setting_name(route, keys):
    what = {"direct": "Direct response", "proxied": "Proxied upstream"}[route]
    return f"{what}, {'one hot key' if keys == 1 else f'{keys:,} keys'}"
