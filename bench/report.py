import json, statistics
import variants
def write(out, samples, settings, begun):
    out.mkdir(parents=True, exist_ok=True)
    (out/"results.json").write_text(json.dumps(samples))
    lines=[]
    for route in variants.ROUTES:
        for keys in variants.KEYS:
            for v in variants.ALL:
                pick=lambda kind,f: [s[f] for s in samples if (s["route"],s["keys"],s["variant"],s["kind"])==(route,keys,v.slug,kind) and f in s]
                row=[route,str(keys),v.name]
                for kind,f in [("closed","per_second"),("closed","envoy_cpu_us"),("closed","companion_cpu_us"),("closed","store_cpu_us"),("closed","callouts"),("closed","evictions"),("open","p50_us"),("open","p95_us"),("open","p99_us")]:
                    x=pick(kind,f); row.append(f"{statistics.median(x):.2f}" if x else "")
                lines.append(" | ".join(row))
    (out/"results.md").write_text("\n".join(lines))
