//! What the table keeps, gives up and counts.

use super::*;

/// Slots in memory; `interfere` makes the next so many stores fail, as another writer does.
#[derive(Default)]
pub(crate) struct Memory {
    slots: OwnSlots,
    pub(crate) interfere: usize,
    pub(crate) operations: usize,
}

impl Slots for Memory {
    fn load(&mut self, slot: u32) -> Option<(Vec<u8>, u32)> {
        self.operations += 1;
        self.slots.load(slot)
    }

    fn store(&mut self, slot: u32, bytes: &[u8], version: Option<u32>) -> Result<(), Conflict> {
        self.operations += 1;
        if self.interfere > 0 {
            self.interfere -= 1;
            return Err(Conflict);
        }
        self.slots.store(slot, bytes, version)
    }
}

const NOW: Instant = Instant::from_micros(5_000_000_000);

fn quota(capacity: u64, rate: &str) -> TokenBucket {
    TokenBucket::new(capacity, rate.parse().unwrap()).unwrap()
}

fn of(policy: &str, identity: &str) -> String {
    format!("rl:{{{identity}}}:{policy}")
}

fn remaining(table: &Table, slots: &mut Memory, key: &str, quota: &TokenBucket) -> u64 {
    table.standing(slots, &of("p", key), quota, 1, NOW).remaining
}

#[test]
fn a_charge_is_seen_by_the_next_reader() {
    let (table, mut slots, quota) = (Table::new(4, [7; 16]), Memory::default(), quota(3, "1/m"));
    for left in [2, 1, 0] {
        let standing = table.charge(&mut slots, &of("p", "a"), &quota, 1, NOW);
        assert_eq!((standing.fit, standing.remaining), (Fit::Now, left));
    }
    let refused = table.charge(&mut slots, &of("p", "a"), &quota, 1, NOW);
    assert_eq!(refused.fit, Fit::After(60_000_000));
    assert_eq!(remaining(&table, &mut slots, "b", &quota), 3);
    table.adjust(&mut slots, &of("p", "a"), &quota, 2, Fate::Refund, NOW);
    assert_eq!(remaining(&table, &mut slots, "a", &quota), 2);
}

#[test]
fn a_lost_race_is_tried_again_and_counts_once() {
    let (table, quota) = (Table::new(1, [7; 16]), quota(3, "1/m"));
    let mut slots = Memory { interfere: 3, ..Memory::default() };
    assert_eq!(table.charge(&mut slots, &of("p", "a"), &quota, 1, NOW).remaining, 2);
    assert_eq!(remaining(&table, &mut slots, "a", &quota), 2);
}

#[test]
fn a_race_without_end_admits_nothing() {
    let (table, quota) = (Table::new(1, [7; 16]), quota(3, "1/m"));
    let mut slots = Memory { interfere: usize::MAX, ..Memory::default() };
    assert_eq!(table.charge(&mut slots, &of("p", "a"), &quota, 1, NOW).fit, Fit::After(1));
    assert!(slots.operations <= 2 * MAX_ATTEMPTS);
}

#[test]
fn a_flood_of_new_clients_does_not_forgive_a_known_one() {
    let (table, mut slots, quota) = (Table::new(16, [7; 16]), Memory::default(), quota(100, "100/m"));
    table.charge(&mut slots, &of("p", "known"), &quota, 60, NOW);
    for client in 0..10_000 {
        table.charge(&mut slots, &of("p", &format!("flood-{client}")), &quota, 1, NOW);
    }
    assert_eq!(remaining(&table, &mut slots, "known", &quota), 40);
    assert!(table.take_evictions() >= 10_000 - 16 * ENTRIES_PER_SLOT as u64);
    let bytes: usize = slots.slots.0.values().map(|(bytes, _)| bytes.len()).sum();
    assert!(bytes as u64 <= table.max_bytes());
}

#[test]
fn a_flood_under_a_long_limit_does_not_switch_a_short_one_off() {
    let (table, mut slots) = (Table::new(16, [7; 16]), Memory::default());
    let (daily, login) = (quota(1_000, "1000/d"), quota(5, "5/m"));
    for client in 0..10_000 {
        table.charge(&mut slots, &of("daily", &format!("flood-{client}")), &daily, 1, NOW);
    }
    for client in 0..10 {
        let key = format!("login-{client}");
        let admitted = (0..50)
            .filter(|_| table.charge(&mut slots, &of("login", &key), &login, 1, NOW).fit == Fit::Now)
            .count();
        assert_eq!(admitted, 5, "{key}");
    }
}

#[test]
fn a_flood_takes_from_another_policy_only_where_it_has_nothing_itself() {
    let (table, mut slots) = (Table::new(1, [7; 16]), Memory::default());
    let (short, long) = (quota(5, "5/m"), quota(1_000, "1000/d"));
    for client in 0..ENTRIES_PER_SLOT {
        table.charge(&mut slots, &of("short", &format!("s{client}")), &short, 3, NOW);
    }
    for client in 0..1_000 {
        table.charge(&mut slots, &of("long", &format!("l{client}")), &long, 1_000, NOW);
    }
    assert_eq!(table.take_evictions(), 1_000);
    let kept = (0..ENTRIES_PER_SLOT)
        .filter(|client| {
            table.standing(&mut slots, &of("short", &format!("s{client}")), &short, 1, NOW).remaining == 2
        })
        .count();
    assert_eq!(kept, ENTRIES_PER_SLOT - 1);
}

#[test]
fn bytes_of_a_foreign_writer_do_no_harm() {
    let (table, mut slots, quota) = (Table::new(1, [7; 16]), Memory::default(), quota(3, "1/m"));
    for garbage in [vec![], vec![255; 7], vec![255; MAX_ENTRY_BYTES * 20 + 3], vec![0; MAX_ENTRY_BYTES]] {
        slots.slots.0.insert(0, (garbage, 9));
        assert_eq!(table.charge(&mut slots, &of("p", "a"), &quota, 1, NOW).remaining, 2);
    }
}
