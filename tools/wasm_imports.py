#!/usr/bin/env python3
"""Checks that a module can be loaded by Envoy, before an Envoy refuses it: wasm_imports.py FILE.

A single import that the host does not know makes Envoy refuse the whole module. Such an import
slips in with a dependency, so the built file is what is looked at. The size is bounded as well:
every proxy fetches, keeps and compiles the module.
"""

import sys

MAX_BYTES = 600 * 1024

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

ALLOWED = {("env", "proxy_" + name) for name in PROXY.split()}
ALLOWED |= {("wasi_snapshot_preview1", name) for name in WASI.split()}

IMPORT_SECTION = 2
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


def imports(module):
    """Yields (module, name, kind) for each import of a WebAssembly file."""
    reader = Reader(module)
    if reader.take(8) != b"\0asm\1\0\0\0":
        raise ValueError("not a WebAssembly module of version 1")
    while reader.at < len(module):
        section, content = reader.byte(), reader.take(reader.number())
        if section == IMPORT_SECTION:
            yield from import_entries(Reader(content))


def import_entries(reader):
    for _ in range(reader.number()):
        origin, name, kind = reader.name(), reader.name(), reader.byte()
        yield origin, name, KINDS[kind]
        if kind != 0:
            # Anything but a function is refused whatever follows, so the rest need not be read.
            return
        reader.number()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    path = sys.argv[1]
    try:
        with open(path, "rb") as file:
            module = file.read()
        found = list(imports(module))
    except (OSError, ValueError, IndexError) as error:
        sys.exit(f"{path}: {error}")

    faults = [
        f"imports {kind} {origin}.{name}, which Envoy does not provide"
        for origin, name, kind in found
        if kind != "function" or (origin, name) not in ALLOWED
    ]
    if len(module) > MAX_BYTES:
        faults.append(f"has {len(module)} bytes; at most {MAX_BYTES} are allowed")
    for fault in faults:
        print(f"{path} {fault}", file=sys.stderr)
    if faults:
        sys.exit(1)
    print(f"{path}: {len(module)} bytes, {len(found)} imports, all of them provided by Envoy")


if __name__ == "__main__":
    main()
