//! Host functions, with every status turned into a value.
//!
//! The SDK's wrappers panic on a status they do not expect, and a panic takes down a worker's VM with all
//! its requests. So the calls on the request path are made here, and an unexpected status is an absence
//! or an error. All `unsafe` of the filter is in this file.
#![expect(unsafe_code, reason = "host functions are foreign functions")]

use core::time::Duration;

use limiter::time::Instant;

/// Header maps by their number in the ABI.
#[derive(Clone, Copy)]
pub(crate) enum Map {
    Request = 0,
    Response = 2,
    Callout = 6,
}

/// Buffers by their number in the ABI.
#[derive(Clone, Copy)]
pub(crate) enum Buffer {
    CalloutBody = 4,
    PluginConfiguration = 7,
}

/// The host said that it did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostError;

const OK: u32 = 0;

/// Inserts a key into shared data only where it is absent: the host compares versions only for keys that
/// are there, and none has this one.
const ABSENT: u32 = u32::MAX;

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn proxy_get_buffer_bytes(
        buffer: u32,
        start: usize,
        size: usize,
        data: *mut *mut u8,
        len: *mut usize,
    ) -> u32;
    fn proxy_get_header_map_value(
        map: u32,
        key: *const u8,
        key_len: usize,
        data: *mut *mut u8,
        len: *mut usize,
    ) -> u32;
    fn proxy_replace_header_map_value(
        map: u32,
        key: *const u8,
        key_len: usize,
        value: *const u8,
        len: usize,
    ) -> u32;
    fn proxy_remove_header_map_value(map: u32, key: *const u8, key_len: usize) -> u32;
    fn proxy_get_property(path: *const u8, path_len: usize, data: *mut *mut u8, len: *mut usize) -> u32;
    fn proxy_get_shared_data(
        key: *const u8,
        key_len: usize,
        data: *mut *mut u8,
        len: *mut usize,
        cas: *mut u32,
    ) -> u32;
    fn proxy_set_shared_data(key: *const u8, key_len: usize, value: *const u8, len: usize, cas: u32) -> u32;
    fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
    fn proxy_set_effective_context(context: u32) -> u32;
    fn proxy_continue_stream(stream: u32) -> u32;
    fn proxy_send_local_response(
        status: u32,
        details: *const u8,
        details_len: usize,
        body: *const u8,
        body_len: usize,
        headers: *const u8,
        headers_len: usize,
        grpc_status: i32,
    ) -> u32;
    fn proxy_define_metric(kind: u32, name: *const u8, name_len: usize, id: *mut u32) -> u32;
    fn proxy_increment_metric(id: u32, offset: i64) -> u32;
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    fn clock_time_get(clock: u32, precision: u64, time_ns: *mut u64) -> u16;
}

unsafe extern "C" {
    /// The module's own export, by which the host wakes a root context.
    fn proxy_on_queue_ready(context: u32, queue: u32);
}

/// Takes over what the host has allocated in this module by its `proxy_on_memory_allocate`.
///
/// A call that succeeds without data returns an empty value.
fn returned(call: impl FnOnce(*mut *mut u8, *mut usize) -> u32) -> Option<Vec<u8>> {
    let (mut data, mut len) = (core::ptr::null_mut(), 0);
    if call(&raw mut data, &raw mut len) != OK {
        return None;
    }
    if data.is_null() {
        return Some(Vec::new());
    }
    // SAFETY: the SDK's allocator made a boxed slice of exactly this length, and the host gave it up.
    Some(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(data, len)) }.into_vec())
}

fn done(status: u32) -> Result<(), HostError> {
    if status == OK { Ok(()) } else { Err(HostError) }
}

pub(crate) fn buffer(buffer: Buffer, max_bytes: usize) -> Option<Vec<u8>> {
    // SAFETY: the out pointers are valid for the call.
    returned(|data, len| unsafe { proxy_get_buffer_bytes(buffer as u32, 0, max_bytes, data, len) })
}

/// The first value of a header, which may be empty; `None` where the header is absent.
pub(crate) fn header(map: Map, name: &str) -> Option<Vec<u8>> {
    // SAFETY: as above; the name outlives the call.
    returned(|data, len| unsafe {
        proxy_get_header_map_value(map as u32, name.as_ptr(), name.len(), data, len)
    })
}

/// Puts one line in place of all lines of a header.
pub(crate) fn set_header(map: Map, name: &str, value: &[u8]) -> Result<(), HostError> {
    // SAFETY: name and value outlive the call.
    done(unsafe {
        proxy_replace_header_map_value(map as u32, name.as_ptr(), name.len(), value.as_ptr(), value.len())
    })
}

pub(crate) fn remove_header(map: Map, name: &str) -> Result<(), HostError> {
    // SAFETY: the name outlives the call.
    done(unsafe { proxy_remove_header_map_value(map as u32, name.as_ptr(), name.len()) })
}

/// A property by its path, whose segments are joined by NUL.
pub(crate) fn property(path: &str) -> Option<Vec<u8>> {
    // SAFETY: the path outlives the call; the out pointers are valid.
    returned(|data, len| unsafe { proxy_get_property(path.as_ptr(), path.len(), data, len) })
}

/// A value of shared data with its version.
pub(crate) fn shared_data(key: &str) -> Option<(Vec<u8>, u32)> {
    let mut cas = 0;
    // SAFETY: the key outlives the call; the out pointers are valid.
    let value = returned(|data, len| unsafe {
        proxy_get_shared_data(key.as_ptr(), key.len(), data, len, &raw mut cas)
    })?;
    Some((value, cas))
}

/// Sets a value of shared data whose version is still `version`, or, with `None`, that is absent.
pub(crate) fn set_shared_data(key: &str, value: &[u8], version: Option<u32>) -> Result<(), HostError> {
    let cas = version.unwrap_or(ABSENT);
    // SAFETY: key and value outlive the call.
    done(unsafe { proxy_set_shared_data(key.as_ptr(), key.len(), value.as_ptr(), value.len(), cas) })
}

/// Calls the root context's `on_tick` every so many milliseconds; 0 never. Of the effective context.
pub(crate) fn set_tick_period_ms(period_ms: u32) -> Result<(), HostError> {
    // SAFETY: no pointers.
    done(unsafe { proxy_set_tick_period_milliseconds(period_ms) })
}

/// Makes the following calls act on another context. Fails for one that is gone; then nothing changed.
pub(crate) fn set_effective_context(context: u32) -> Result<(), HostError> {
    // SAFETY: no pointers.
    done(unsafe { proxy_set_effective_context(context) })
}

/// Lets the effective context's request go on. Its headers cannot be read after this.
pub(crate) fn resume_request() -> Result<(), HostError> {
    // SAFETY: no pointers. 0 is the request's stream.
    done(unsafe { proxy_continue_stream(0) })
}

/// Answers the effective context's request. `details` must not hold blanks.
pub(crate) fn send_local_response(
    status: u16,
    details: &str,
    headers: &[(&str, &str)],
    body: &str,
    grpc_status: Option<i32>,
) -> Result<(), HostError> {
    let headers = serialize_map(headers);
    // SAFETY: everything pointed to outlives the call. −1 is no gRPC status.
    done(unsafe {
        proxy_send_local_response(
            u32::from(status),
            details.as_ptr(),
            details.len(),
            body.as_ptr(),
            body.len(),
            headers.as_ptr(),
            headers.len(),
            grpc_status.unwrap_or(-1),
        )
    })
}

/// A header map as the ABI writes it: the count, the lengths, then every text with a NUL behind it.
fn serialize_map(map: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let push_len = |bytes: &mut Vec<u8>, len: usize| {
        bytes.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
    };
    push_len(&mut bytes, map.len());
    for (name, value) in map {
        push_len(&mut bytes, name.len());
        push_len(&mut bytes, value.len());
    }
    for text in map.iter().flat_map(|(name, value)| [name, value]) {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    }
    bytes
}

/// Defines a counter. Each call makes a new id, also for a name that is known.
pub(crate) fn define_counter(name: &str) -> Result<u32, HostError> {
    let mut id = 0;
    // SAFETY: the name outlives the call; the out pointer is valid. 0 is a counter.
    done(unsafe { proxy_define_metric(0, name.as_ptr(), name.len(), &raw mut id) })?;
    Ok(id)
}

/// Adds to a counter; the host refuses less than 1.
pub(crate) fn increment(id: u32, offset: u64) -> Result<(), HostError> {
    // SAFETY: no pointers.
    done(unsafe { proxy_increment_metric(id, i64::try_from(offset).unwrap_or(i64::MAX)) })
}

/// The monotonic clock, which has one epoch for all workers of a process.
pub(crate) fn now() -> Instant {
    Instant::from_micros(clock_ns(1) / 1_000)
}

/// Time since 1970.
pub(crate) fn unix_now() -> Duration {
    Duration::from_nanos(clock_ns(0))
}

fn clock_ns(clock: u32) -> u64 {
    let mut time_ns = 0;
    // SAFETY: the out pointer is valid. A host without this clock leaves zero, which only slows refills.
    unsafe { clock_time_get(clock, 1, &raw mut time_ns) };
    time_ns
}

/// Runs the root context's `on_queue_ready` now, from within a callback of one of its streams, whose id
/// stands in for the queue's.
///
/// The SDK books a callout on the context whose callback it is running, and drops the answer when that
/// context is gone. A callout serves many requests, so it must be made while the SDK runs a callback of
/// the root. The caller sets the effective context there and back.
pub(crate) fn call_root(root: u32, stream: u32) {
    // SAFETY: this is how the host calls it; from a stream's callback the SDK holds no root borrowed.
    unsafe { proxy_on_queue_ready(root, stream) };
}
