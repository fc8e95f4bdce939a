#!/usr/bin/env python3
"""Shows Tidegate at work: the companion (in memory), Envoy with the filter, and a few requests.

Start it with `make demo`. It stays up to play with until Ctrl-C; with DEMO_ONCE=1 it ends after
the requests, with status 0 only if the answers were what they should be.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "envoy/demo.yaml"
ENVOY = ROOT / ".tools/bin/envoy"
COMPANION = ROOT / "dist/tidegate"
FILTER = ROOT / "dist/tidegate.wasm"

# The ports of demo.yaml: where clients connect, Envoy's admin interface, the companion.
LISTENER, ADMIN, COMPANION_PORT = 10000, 9901, 8081

START_SECONDS = 30
# More than the policy of the shown path has tokens, so that the last of them is refused.
MAX_REQUESTS = 20

# All of 127.0.0.0/8 is this machine. The policies know a client by its address, so what is asked from
# here is charged to somebody else than the requests that are shown.
PROBE_ADDRESS = "127.0.0.2"


class DemoError(Exception):
    """Something did not come as the demo promises; the text is for the person who watches."""


def main():
    for path, remedy in [(COMPANION, "make build"), (FILTER, "make build"), (ENVOY, "make tools")]:
        if not path.exists():
            raise DemoError(f"{path.relative_to(ROOT)} is missing; run `{remedy}`")

    folder = Path(tempfile.mkdtemp(prefix="tidegate-demo-"))
    try:
        run(folder)
    except DemoError as error:
        raise DemoError(f"{error}\nThe logs are in {folder}") from None
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def run(folder):
    with contextlib.ExitStack() as cleanup:
        config, ports = choose_ports(folder)
        address = f"127.0.0.1:{ports[COMPANION_PORT]}"

        say(f"Starting the companion on {address}, with its store in memory, and Envoy.")
        serve = [COMPANION, "serve", "--listen", address, "--store", "memory"]
        companion = cleanup.enter_context(running("companion", serve, folder))
        wait_for(companion, ports[COMPANION_PORT], "/readyz")
        # Envoys of one machine share memory for hot restart, which a demo has no use for.
        command = [ENVOY, "--config-path", config, "--disable-hot-restart", "--concurrency", "2"]
        # The access log shows a request at once, and not within Envoy's ten seconds.
        command += ["--log-level", "warn", "--file-flush-interval-msec", "50"]
        envoy = cleanup.enter_context(running("envoy", command, folder))
        wait_for(envoy, ports[ADMIN], "/ready")
        # Of the connection to the companion and of its scripts, the very first request is the one
        # that may be late. It is none of those that are shown.
        wait_for(envoy, ports[LISTENER], "/api/", field="ratelimit", source=PROBE_ADDRESS)

        show(ports[LISTENER])
        check_statistics(ports[ADMIN])
        if os.environ.get("DEMO_ONCE") == "1":
            return
        base = f"http://127.0.0.1:{ports[LISTENER]}"
        say(f"""
            Envoy and the companion stay up. In another terminal:

              curl -i {base}/                             100 a minute for each address, decided in the proxy
              curl -i -H 'x-api-key: bob' {base}/api/x    5 at once, then 10 a minute for each key
              curl -i -H 'x-api-key: bob' -d '' {base}/orders    each costs 5 of 10 tokens
              curl -s 'http://127.0.0.1:{ports[ADMIN]}/stats/prometheus?filter=wasmcustom'    what the filter has counted
              tail -f {folder}/envoy.log    the access log, which names the policy that refused

            Ctrl-C ends both and removes the logs.""")
        while companion.poll() is None and envoy.poll() is None:
            time.sleep(0.5)
        raise DemoError("one of the processes ended:\n" + tail(folder))


def choose_ports(folder):
    """The configuration and its ports: as they are written, or a copy with free ones instead."""
    ports = {port: port if is_free(port) else free_port() for port in (LISTENER, ADMIN, COMPANION_PORT)}
    if all(port == chosen for port, chosen in ports.items()):
        return CONFIG, ports
    for port, chosen in ports.items():
        if port != chosen:
            say(f"Port {port} is taken; using {chosen} instead.")
    text = CONFIG.read_text()
    text = re.sub(r"port_value: (\d+)", lambda found: f"port_value: {ports[int(found[1])]}", text)
    config = folder / CONFIG.name
    config.write_text(text)
    return config, ports


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(name, command, folder):
    """A process that ends with the block, and what it prints in a file of the folder."""
    with open(folder / f"{name}.log", "wb") as log:
        # A group of its own: Ctrl-C reaches the demo alone, which then ends them in order.
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    process.log = folder / f"{name}.log"
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(process, port, path, field=None, source=None):
    """Waits until a port answers 200, with this field where one is named; asks from the address `source`."""
    end = time.monotonic() + START_SECONDS
    last = "no answer"
    while time.monotonic() < end:
        if process.poll() is not None:
            raise DemoError(f"{process.args[0].name} ended with {process.returncode}:\n{tail(process.log)}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            status, _, fields, _ = get(port, path, source=source)
            if status == 200 and (field is None or field in fields):
                return
            last = f"{status} with {', '.join(fields) or 'no fields'}"
        time.sleep(0.05)
    wanted = "200" if field is None else f"200 with {field}"
    raise DemoError(
        f"port {port} did not answer {path} with {wanted} within {START_SECONDS} s; last: {last}\n"
        + tail(process.log)
    )


def tail(path, lines=30):
    files = sorted(path.glob("*.log")) if path.is_dir() else [path]
    return "\n".join("\n".join(file.read_text(errors="replace").splitlines()[-lines:]) for file in files)


def get(port, path, headers=None, source=None):
    """The status, its reason, the header fields and the body of an answer, whatever its status is."""
    source = source and (source, 0)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10, source_address=source)
    with contextlib.closing(connection):
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.reason, answer.headers, answer.read().decode()


def show(port):
    """Requests under one key until the limit refuses one, shown as curl shows them, and checked."""
    path, headers = "/api/hello", {"x-api-key": "alice"}
    admitted = 0
    for _ in range(MAX_REQUESTS):
        say(f"\n$ curl -i -H 'x-api-key: alice' http://127.0.0.1:{port}{path}")
        status, reason, fields, body = get(port, path, headers)
        say(f"HTTP/1.1 {status} {reason}")
        for name, value in fields.items():
            say(f"{name}: {value}")
        say(f"\n{body.strip()}")
        for name in ("ratelimit-policy", "ratelimit"):
            expect(name in fields, f"{status} has no {name} field")
        if status == 429:
            expect(admitted > 0, "the very first request was refused")
            check_refusal(fields, body)
            say(f"\nAfter {admitted} admitted requests the limit holds.")
            return
        expect(status == 200, f"neither 200 nor 429 but {status}")
        admitted += 1
    raise DemoError(f"{MAX_REQUESTS} requests in a row were admitted; a 429 was due")


def check_refusal(fields, body):
    expect(fields.get("retry-after", "").isdigit(), "429 has no retry-after in seconds")
    try:
        error = json.loads(body).get("error")
    except ValueError:
        raise DemoError(f"429 has a body that is not JSON: {body!r}") from None
    expect(error == "rate_limit_exceeded", f"429 has an unexpected body: {body!r}")


def check_statistics(port):
    _, _, _, body = get(port, "/stats/prometheus?filter=wasmcustom")
    expect('tidegate_policy_refused{policy="per-key"} 1' in body, f"no policy's name is a label in\n{body}")


def expect(holds, otherwise):
    if not holds:
        raise DemoError(f"unexpected answer: {otherwise}")


def say(text):
    # Longer texts are indented in this file as its code is.
    print(text.replace("\n" + " " * 12, "\n"), flush=True)


def end(_number, _frame):
    raise KeyboardInterrupt


if __name__ == "__main__":
    # So that `kill` ends the demo like Ctrl-C does: with what it has started.
    signal.signal(signal.SIGTERM, end)
    try:
        main()
    except KeyboardInterrupt:
        say("\nEnded.")
    except DemoError as error:
        sys.exit(f"demo: {error}")
