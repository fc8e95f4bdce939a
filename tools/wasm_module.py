#!/usr/bin/env python3
"""Makes of a built module the one that Envoy loads: wasm_module.py BUILT SHIPPED.

What a module exports, Envoy calls, for every request, whether there is anything to do or not. The SDK
exports every callback that there is. tools/wasm-link leaves out what is not to be called; should a name be
left, it is taken out of the export section here.

The names of functions, which Envoy prints when the module traps, are kept of Tidegate's own crates, whose
functions a backtrace is read for, and written as people read them: all names would be an eighth of the module.

Checked are its exports, so that a new one is noticed; its imports, since one that the host does not know
makes Envoy refuse the whole module; and its size: every proxy fetches, keeps and compiles it. All of
these change with a dependency, so the built file is what is looked at.
"""

import re
import sys

MAX_BYTES = 700_000

# What the host needs, and the callbacks in which the filter has something to do.
EXPORTS = """
    memory _initialize proxy_abi_version_0_2_1 proxy_on_memory_allocate
    proxy_on_context_create proxy_on_delete proxy_on_configure proxy_on_tick
    proxy_on_request_headers proxy_on_response_headers proxy_on_http_call_response
"""

# What the SDK exports besides. The host takes each for optional, and does without it what these do: lets
# a body or a trailer pass, takes a start or an end for accepted. The end of a stream is its deletion, which
# comes at once after proxy_on_done. proxy_on_queue_ready is called from within the module alone.
UNUSED = """
    proxy_on_vm_start proxy_on_done proxy_on_log proxy_on_queue_ready proxy_on_foreign_function
    proxy_on_request_body proxy_on_request_trailers proxy_on_response_body proxy_on_response_trailers
    proxy_on_new_connection proxy_on_downstream_data proxy_on_downstream_connection_close
    proxy_on_upstream_data proxy_on_upstream_connection_close
    proxy_on_grpc_receive_initial_metadata proxy_on_grpc_receive
    proxy_on_grpc_receive_trailing_metadata proxy_on_grpc_close
"""

# What proxy-wasm-cpp-host registers for modules of ABI 0.2.1, which the Rust SDK builds
# (FOR_ALL_HOST_FUNCTIONS and the additions of this ABI in WasmBase::registerCallbacks).
PROXY = """
    log get_status set_property get_property send_local_response get_shared_data set_shared_data
    register_shared_queue resolve_shared_queue dequeue_shared_queue enqueue_shared_queue
    get_header_map_value add_header_map_value replace_header_map_value remove_header_map_value
    get_header_map_pairs set_header_map_pairs get_header_map_size get_buffer_status get_buffer_bytes
    set_buffer_bytes http_call grpc_call grpc_stream grpc_close grpc_cancel grpc_send
    set_tick_period_milliseconds get_current_time_nanoseconds define_metric increment_metric
    record_metric get_metric set_effective_context done call_foreign_function
    continue_stream close_stream get_log_level
"""

# FOR_ALL_WASI_FUNCTIONS in proxy-wasm-cpp-host. Those for files and sockets exist and fail.
WASI = """
    fd_write fd_read fd_seek fd_close fd_fdstat_get fd_fdstat_set_flags fd_fdstat_set_rights
    environ_get environ_sizes_get args_get args_sizes_get clock_time_get clock_res_get fd_advise
    fd_allocate fd_datasync fd_filestat_set_size fd_filestat_set_times fd_pread fd_pwrite fd_readdir
    fd_renumber fd_sync fd_tell path_create_directory path_filestat_set_times path_link path_readlink
    path_remove_directory path_rename path_symlink path_unlink_file sock_accept sock_recv sock_send
    sock_shutdown random_get sched_yield poll_oneoff proc_exit path_open fd_prestat_get
    fd_prestat_dir_name path_filestat_get fd_filestat_get
"""

EXPORTS, UNUSED = set(EXPORTS.split()), set(UNUSED.split())
IMPORTS = {("env", "proxy_" + name) for name in PROXY.split()}
IMPORTS |= {("wasi_snapshot_preview1", name) for name in WASI.split()}

# A path of a function in, or a generic one for, a crate of this workspace.
OWN = re.compile(r"\b(tidegate|limiter|plugin_config)\b")

HEADER = b"\0asm\1\0\0\0"
CUSTOM_SECTION = 0
IMPORT_SECTION = 2
EXPORT_SECTION = 7
FUNCTION = 0
FUNCTION_NAMES = 1
KINDS = ("function", "table", "memory", "global")


class Reader:
    """Reads the WebAssembly binary format from the start of some bytes."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count):
        taken = self.data[self.at : self.at + count]
        if len(taken) < count:
            raise ValueError("the file ends in the middle of a section")
        self.at += count
        return taken

    def byte(self):
        return self.take(1)[0]

    def number(self):
        """An unsigned LEB128 integer."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def name(self):
        return self.take(self.number()).decode()


def number(value):
    """An unsigned LEB128 integer."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def name(text):
    return number(len(text.encode())) + text.encode()


def sections(module):
    """The (id, content) of each section of a WebAssembly file, in their order."""
    reader = Reader(module)
    if reader.take(len(HEADER)) != HEADER:
        raise ValueError("not a WebAssembly module of version 1")
    while reader.at < len(module):
        yield reader.byte(), reader.take(reader.number())


def imports(content):
    """Yields (module, name, kind) for each import of an import section."""
    reader = Reader(content)
    for _ in range(reader.number()):
        origin, field, kind = reader.name(), reader.name(), reader.byte()
        yield origin, field, KINDS[kind]
        if kind != FUNCTION:
            # Anything but a function is refused whatever follows, so the rest need not be read.
            return
        reader.number()


def exports(content):
    """The (name, kind, index) of each export of an export section."""
    reader = Reader(content)
    return [(reader.name(), reader.byte(), reader.number()) for _ in range(reader.number())]


def export_section(entries):
    written = (name(field) + bytes([kind]) + number(index) for field, kind, index in entries)
    return number(len(entries)) + b"".join(written)


# What rustc writes in place of characters that linkers do not take.
ESCAPES = {"LT": "<", "GT": ">", "RF": "&", "BP": "*", "C": ",", "LP": "(", "RP": ")", "SP": "@"}


def unescape(match):
    code = match[1]
    return ESCAPES.get(code) or (chr(int(code[1:], 16)) if re.fullmatch("u[0-9a-f]+", code) else match[0])


def readable(symbol):
    """A symbol of rustc's older mangling, _ZN…17h…E, as a path; any other as it is."""
    mangled = re.fullmatch(r"_ZN(.*)17h[0-9a-f]{16}E", symbol)
    path, rest = [], mangled[1] if mangled else ""
    while rest:
        length = re.match("[0-9]+", rest)
        if not length:
            return symbol
        end = length.end() + int(length[0])
        part = re.sub(r"^_\$", "$", rest[length.end() : end])
        path.append(re.sub(r"\$(\w+)\$", unescape, part).replace("..", "::"))
        rest = rest[end:]
    return "::".join(path) or symbol


def name_section(content):
    """A custom section; that of names with our functions' names alone, readable."""
    reader = Reader(content)
    if reader.name() != "name":
        return content
    written = bytearray(name("name"))
    while reader.at < len(content):
        kind, names = reader.byte(), reader.take(reader.number())
        if kind == FUNCTION_NAMES:
            entries = Reader(names)
            named = [(entries.number(), readable(entries.name())) for _ in range(entries.number())]
            named = [number(index) + name(path) for index, path in named if OWN.search(path)]
            names = number(len(named)) + b"".join(named)
        written += bytes([kind]) + number(len(names)) + names
    return bytes(written)


def ship(module):
    """The module to ship, its imports, and what is wrong with it."""
    shipped, imported, exported = bytearray(HEADER), [], []
    for section, content in sections(module):
        if section == IMPORT_SECTION:
            imported = list(imports(content))
        elif section == EXPORT_SECTION:
            exported = exports(content)
            content = export_section([entry for entry in exported if entry[0] in EXPORTS])
        elif section == CUSTOM_SECTION:
            content = name_section(content)
        shipped += bytes([section]) + number(len(content)) + content

    faults = [
        f"imports {kind} {origin}.{field}, which Envoy does not provide"
        for origin, field, kind in imported
        if kind != "function" or (origin, field) not in IMPORTS
    ]
    found = {field for field, _, _ in exported}
    faults += [f"does not export {field}" for field in sorted(EXPORTS - found)]
    faults += [
        f"exports {field}: say in EXPORTS or UNUSED whether Envoy is to call it"
        for field in sorted(found - EXPORTS - UNUSED)
    ]
    if len(shipped) > MAX_BYTES:
        faults.append(f"has {len(shipped)} bytes; at most {MAX_BYTES} are allowed")
    return bytes(shipped), imported, faults


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    built, target = sys.argv[1:]
    try:
        with open(built, "rb") as file:
            shipped, imported, faults = ship(file.read())
    except (OSError, ValueError, IndexError) as error:
        sys.exit(f"{built}: {error}")
    for fault in faults:
        print(f"{built} {fault}", file=sys.stderr)
    if faults:
        sys.exit(1)
    with open(target, "wb") as file:
        file.write(shipped)
    print(
        f"{target}: {len(shipped)} bytes, {len(EXPORTS)} exports, {len(imported)} imports, "
        "all of them provided by Envoy"
    )


if __name__ == "__main__":
    main()
