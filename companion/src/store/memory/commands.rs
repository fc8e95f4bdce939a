//! The Redis commands that the scripts use, with Redis' own replies and errors, over the memory store's
//! keys. A command that no script needs is not here.

use super::keyspace::{Full, Keyspace};

/// What a command answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Nil,
    Status(&'static str),
    Integer(i64),
    Bulk(Vec<u8>),
    Bulks(Vec<Vec<u8>>),
    Error(&'static str),
}

const WRONG_ARITY: Reply = Reply::Error("ERR Wrong number of args calling Redis command from script");
const UNKNOWN: Reply = Reply::Error("ERR Unknown Redis command called from script");
const SYNTAX: Reply = Reply::Error("ERR syntax error");
const NOT_AN_INTEGER: Reply = Reply::Error("ERR value is not an integer or out of range");
const INVALID_EXPIRY: Reply = Reply::Error("ERR invalid expire time in 'set' command");
const OUT_OF_MEMORY: Reply = Reply::Error("OOM command not allowed when used memory > 'maxmemory'.");

/// Executes a command: its name in any case, then its arguments.
pub(super) fn execute(keyspace: &mut Keyspace, words: &[Vec<u8>]) -> Reply {
    let Some((name, arguments)) = words.split_first() else {
        return Reply::Error("ERR Please specify at least one argument for this redis lib call");
    };
    match (name.to_ascii_uppercase().as_slice(), arguments) {
        (b"GET", [key]) => keyspace.get(key).map_or(Reply::Nil, |value| Reply::Bulk(value.to_vec())),
        (b"SET", [key, value]) => set(keyspace, key, value, None),
        (b"SET", [key, value, option, lives_ms]) if option.eq_ignore_ascii_case(b"PX") => {
            match parse_integer(lives_ms) {
                None => NOT_AN_INTEGER,
                Some(lives_ms) if lives_ms <= 0 => INVALID_EXPIRY,
                Some(lives_ms) => set(keyspace, key, value, Some(lives_ms.unsigned_abs())),
            }
        }
        (b"SET", [_, _, _, ..]) => SYNTAX,
        (b"DEL", [_, ..]) => Reply::Integer(remove(keyspace, arguments)),
        (b"TIME", []) => {
            let now_us = keyspace.now_us();
            Reply::Bulks([now_us / 1_000_000, now_us % 1_000_000].map(|n| n.to_string().into_bytes()).into())
        }
        (b"GET" | b"SET" | b"DEL" | b"TIME", _) => WRONG_ARITY,
        _ => UNKNOWN,
    }
}

fn set(keyspace: &mut Keyspace, key: &[u8], value: &[u8], lives_ms: Option<u64>) -> Reply {
    match keyspace.set(key, value, lives_ms) {
        Ok(()) => Reply::Status("OK"),
        Err(Full) => OUT_OF_MEMORY,
    }
}

fn remove(keyspace: &mut Keyspace, keys: &[Vec<u8>]) -> i64 {
    keys.iter().map(|key| i64::from(keyspace.remove(key))).sum()
}

fn parse_integer(word: &[u8]) -> Option<i64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(keyspace: &mut Keyspace, line: &str) -> Reply {
        let words: Vec<_> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        execute(keyspace, &words)
    }

    #[test]
    fn commands_answer_as_redis_does() {
        let mut keyspace = Keyspace::new(10);
        keyspace.begin(12_345_678);
        let mut run = |line| run(&mut keyspace, line);
        assert_eq!(run("GET k"), Reply::Nil);
        assert_eq!(run("SET k v"), Reply::Status("OK"));
        assert_eq!(run("set k w px 1500"), Reply::Status("OK"));
        assert_eq!(run("get k"), Reply::Bulk(b"w".to_vec()));
        assert_eq!(run("DEL k absent"), Reply::Integer(1));
        assert_eq!(run("TIME"), Reply::Bulks(vec![b"12".to_vec(), b"345678".to_vec()]));
    }

    #[test]
    fn what_redis_refuses_is_refused_with_its_words() {
        let mut keyspace = Keyspace::new(10);
        keyspace.begin(0);
        let mut run = |line| run(&mut keyspace, line);
        assert_eq!(run("GET"), WRONG_ARITY);
        assert_eq!(run("SET k"), WRONG_ARITY);
        assert_eq!(run("TIME now"), WRONG_ARITY);
        assert_eq!(run("FLUSHALL"), UNKNOWN);
        assert_eq!(run("SET k v EX 1"), SYNTAX);
        assert_eq!(run("SET k v PX 1.5"), NOT_AN_INTEGER);
        assert_eq!(run("SET k v PX 0"), INVALID_EXPIRY);
        assert_eq!(run("GET k"), Reply::Nil);
    }
}
