//! How often a request that this worker decides from its own tokens asks for memory.
//!
//! In the proxy every allocation is some tens of nanoseconds of a few microseconds that such a request takes
//! here. What these tests hold is that there are no more of them than what they name.
#![expect(unsafe_code, reason = "an allocator is unsafe by nature")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

mod world;

use core::cell::Cell;
use std::alloc::{GlobalAlloc, Layout, System};

use limiter::decision::{Decision, Verdict};
use limiter::fields::{Family, Item, Reset, ResponseHeaders, write};
use limiter::policy::{KeyPart, Policy, Scope};

use world::{World, leased, request_of};

/// Counts what each thread asks for.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator does it all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn counted<R>(run: impl FnOnce() -> R) -> (R, usize) {
    let before = ALLOCATIONS.get();
    let result = run();
    (result, ALLOCATIONS.get() - before)
}

/// A response without rate limit fields. In the proxy setting one allocates nothing here.
struct Plain;

impl ResponseHeaders for Plain {
    fn get(&mut self, _: &'static str) -> Option<Vec<u8>> {
        None
    }

    fn set(&mut self, _: &'static str, _: &[u8]) {}

    fn remove(&mut self, _: &'static str) {}
}

fn hot(policies: Vec<Policy>) -> World {
    let mut world = World::new(policies);
    // Leases and slices grow with the demand that they have seen.
    for _ in 0..2_000 {
        world.request("k");
        world.now = world.now.after_micros(100);
    }
    world
}

/// The decision about a request, and its allocations. Of a few, for one of them may be the slice's last.
fn slice_hit(world: &mut World) -> (Decision, usize) {
    let mut request = request_of("k");
    let hits = (0..4).filter_map(|_| {
        let ((_, decision), count) = counted(|| world.arrive_with(&mut request));
        Some((decision?, count))
    });
    hits.min_by_key(|(_, count)| *count).expect("decided here")
}

fn hot_policy(name: &str) -> Policy {
    leased(name, 50_000, "50000/s")
}

#[test]
fn a_slice_hit_allocates_what_it_reads_and_what_it_returns() {
    let mut world = hot(vec![hot_policy("p")]);
    let (decision, count) = slice_hit(&mut world);
    assert_eq!(decision.verdict, Verdict::Admit);
    // The header's value, which the host allocates in the proxy, and the list of headers that are known; the
    // store key; the list of policies that apply, and that of their marks.
    assert_eq!(count, 5);
}

#[test]
fn a_second_policy_of_the_same_identity_allocates_its_key_alone() {
    let mut world = hot(vec![hot_policy("p"), hot_policy("q")]);
    let (_, count) = slice_hit(&mut world);
    assert_eq!(count, 6);
}

#[test]
fn method_and_path_are_kept_as_they_were_read() {
    let mut policy = hot_policy("p");
    policy.key.extend([KeyPart::Scope(Scope::Method), KeyPart::Scope(Scope::Path)]);
    let (_, count) = slice_hit(&mut hot(vec![policy]));
    // Two values more than above, which the host allocates in the proxy.
    assert_eq!(count, 7);
}

#[test]
fn all_fields_of_a_response_are_written_in_one_buffer() {
    let policies = vec![hot_policy("p"), hot_policy("q")];
    let (decision, _) = slice_hit(&mut hot(policies.clone()));
    let items: Vec<Item<'_>> =
        decision.marks.iter().filter_map(|mark| Item::of(&policies[mark.policy], mark)).collect();
    assert_eq!(items.len(), 2);
    let families = [Family::Draft11, Family::XRateLimit { reset: Reset::Delta }];
    let ((), count) = counted(|| write(&families, &items, Verdict::Admit, None, &mut Plain));
    assert_eq!(count, 1);
}
