//! Lua as the scripts find it in Redis: the same libraries, `redis.call`, conversions and bans.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mlua::{Function, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Value};

use super::clock::Clock;
use super::commands::{self, Reply};
use super::keyspace::Keyspace;
use crate::store::{Call, StoreError};

/// A Lua state over a keyspace, which runs one script call at a time.
#[derive(Debug)]
pub struct Interpreter {
    lua: Lua,
    /// Runs a compiled script; see `sandbox.lua`.
    run: Function,
    /// The compiled scripts by their SHA-1: as many as are built into the binary.
    compiled: HashMap<String, Function>,
    keyspace: Arc<Mutex<Keyspace>>,
    clock: Clock,
}

impl Interpreter {
    /// An interpreter whose scripts work on `keyspace` and see the time of `clock`.
    ///
    /// # Errors
    /// Lua has no memory.
    pub fn new(keyspace: Arc<Mutex<Keyspace>>, clock: Clock) -> mlua::Result<Self> {
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        let keys = Arc::clone(&keyspace);
        let execute = lua.create_function(move |lua, words: MultiValue| {
            let Some(words) = words.iter().map(as_word).collect::<Option<Vec<_>>>() else {
                let message = "ERR Lua redis lib command arguments must be strings or integers";
                return into_lua(lua, Reply::Error(message));
            };
            let reply = commands::execute(&mut lock(&keys), &words);
            into_lua(lua, reply)
        })?;
        let run = lua.load(include_str!("sandbox.lua")).set_name("=sandbox").call(execute)?;
        Ok(Self { lua, run, compiled: HashMap::new(), keyspace, clock })
    }

    /// Runs a script to its end.
    ///
    /// # Errors
    /// [`StoreError::Refused`] where the script does not compile, fails or answers an error,
    /// [`StoreError::BadReply`] where it answers anything but a number or an array of numbers.
    pub fn run(&mut self, call: &Call) -> Result<Vec<i64>, StoreError> {
        lock(&self.keyspace).begin(self.clock.now_us());
        let answer = self.try_run(call).map_err(|error| StoreError::refused(&format!("ERR {error}")))?;
        from_lua(&answer)
    }

    fn try_run(&mut self, call: &Call) -> mlua::Result<Value> {
        let keys = self.lua.create_sequence_from(call.keys.iter().map(String::as_str))?;
        let args = self.lua.create_sequence_from(call.args.iter().map(String::as_str))?;
        let script = if let Some(script) = self.compiled.get(call.script.sha1()) {
            script
        } else {
            let script = self.lua.load(call.script.source()).set_name("=user_script").into_function()?;
            self.compiled.entry(call.script.sha1().to_owned()).or_insert(script)
        };
        self.run.call((script, keys, args))
    }
}

// A panic while the lock was held is reported where it happened; the map itself stays whole.
pub(super) fn lock(keyspace: &Mutex<Keyspace>) -> MutexGuard<'_, Keyspace> {
    keyspace.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An argument of a command as Redis takes it from Lua; `None` for what is neither string nor number.
fn as_word(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(number) => Some(number.to_string().into_bytes()),
        Value::Number(number) => Some(shortest(*number).into_bytes()),
        _ => None,
    }
}

/// A number as C's `%.17g` writes it, as far as scripts may rely on it: whole ones without a fraction.
fn shortest(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e17 { format!("{number:.0}") } else { number.to_string() }
}

fn into_lua(lua: &Lua, reply: Reply) -> mlua::Result<Value> {
    let field = |name: &str, text: &str| {
        let table = lua.create_table()?;
        table.raw_set(name, text)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Nil => Ok(Value::Boolean(false)),
        Reply::Status(text) => field("ok", text),
        Reply::Error(text) => field("err", text),
        #[expect(clippy::cast_precision_loss, reason = "Redis makes a double of it too")]
        Reply::Integer(number) => Ok(Value::Number(number as f64)),
        Reply::Bulk(bytes) => Ok(Value::String(lua.create_string(bytes)?)),
        Reply::Bulks(all) => {
            let texts = all.into_iter().map(|bytes| lua.create_string(bytes));
            Ok(Value::Table(lua.create_sequence_from(texts.collect::<mlua::Result<Vec<_>>>()?)?))
        }
    }
}

fn from_lua(answer: &Value) -> Result<Vec<i64>, StoreError> {
    if let Some(number) = truncate(answer) {
        return Ok(vec![number]);
    }
    let Value::Table(table) = answer else {
        return Err(not_integers(answer));
    };
    if let Ok(Some(words)) = table.raw_get::<Option<LuaString>>("err") {
        return Err(StoreError::refused(&words.to_string_lossy()));
    }
    numbers(table)
}

fn numbers(table: &Table) -> Result<Vec<i64>, StoreError> {
    table
        .sequence_values::<Value>()
        .map(|value| match value {
            Ok(value) => truncate(&value).ok_or_else(|| not_integers(&value)),
            Err(error) => Err(StoreError::BadReply { detail: error.to_string() }),
        })
        .collect()
}

/// A number as Redis replies it: cut to an integer.
#[expect(clippy::cast_possible_truncation, reason = "so does Redis")]
const fn truncate(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(*number),
        Value::Number(number) => Some(*number as i64),
        _ => None,
    }
}

fn not_integers(value: &Value) -> StoreError {
    StoreError::BadReply { detail: format!("a {} where a number should be", value.type_name()) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::script::Script;
    use crate::store::Refusal;

    fn interpreter() -> Interpreter {
        let clock = Clock::Manual(Arc::new(AtomicU64::new(12_345_678)));
        Interpreter::new(Arc::new(Mutex::new(Keyspace::new(10))), clock).unwrap()
    }

    fn run(interpreter: &mut Interpreter, text: &'static str) -> Result<Vec<i64>, StoreError> {
        let script = Box::leak(Box::new(Script::new(text)));
        interpreter.run(&Call { script, keys: vec!["k".to_owned()], args: vec!["7".to_owned()] })
    }

    #[test]
    fn values_are_converted_as_in_redis() {
        let mut interpreter = interpreter();
        let mut run = |text| run(&mut interpreter, text).unwrap();
        assert_eq!(run("return {3.99, -3.99, 2^53, ARGV[1] + 1, #KEYS}"), [3, -3, 1 << 53, 8, 1]);
        assert_eq!(run("return 5"), [5]);
        assert_eq!(run("return {1, 2, nil, 4}"), [1, 2]);
        assert_eq!(run("return redis.call('GET', KEYS[1]) == false and 1 or 0"), [1]);
        assert_eq!(run("return redis.call('SET', KEYS[1], 1e15).ok == 'OK' and 1 or 0"), [1]);
        assert_eq!(run("return redis.call('GET', KEYS[1]) == '1000000000000000' and 1 or 0"), [1]);
        assert_eq!(run("return redis.call('DEL', KEYS[1])"), [1]);
        assert_eq!(
            run("local t = redis.call('TIME') return {tonumber(t[1]), tonumber(t[2])}"),
            [12, 345_678]
        );
    }

    #[test]
    fn errors_are_raised_by_call_and_returned_by_pcall() {
        let mut interpreter = interpreter();
        let caught = "local r = redis.pcall('NOPE') return string.find(r.err, '^ERR Unknown') and 1 or 0";
        assert_eq!(run(&mut interpreter, caught), Ok(vec![1]));
        let caught = "local ok, e = pcall(redis.call, 'GET') return (not ok and e.err) and 1 or 0";
        assert_eq!(run(&mut interpreter, caught), Ok(vec![1]));
        for (text, expected) in [
            ("redis.call('NOPE') return 1", Refusal::Other),
            ("redis.call('GET', {}) return 1", Refusal::Other),
            ("return {err = 'READONLY You cannot'}", Refusal::ReadOnly),
            ("return redis.error_reply('OOM command not allowed')", Refusal::OutOfMemory),
            ("error('deliberate')", Refusal::Other),
            ("this is not Lua", Refusal::Other),
        ] {
            let error = run(&mut interpreter, text).unwrap_err();
            assert!(
                matches!(&error, StoreError::Refused { refusal, .. } if *refusal == expected),
                "{error:?}"
            );
        }
        for text in ["return 'text'", "return {1, 'text'}", "return nil"] {
            let error = run(&mut interpreter, text).unwrap_err();
            assert!(matches!(error, StoreError::BadReply { .. }), "{error:?}");
        }
        assert_eq!(run(&mut interpreter, "return 1"), Ok(vec![1]), "nothing is left of the errors");
    }

    #[test]
    fn scripts_reach_nothing_outside_and_leave_nothing_behind() {
        let mut interpreter = interpreter();
        for text in [
            "leak = 1 return 1",
            "function leak() end return 1",
            "return unknown_global",
            "return os.time()",
            "return io.read()",
            "return require('os')",
            "return dofile('/etc/hostname')",
            "return debug.getinfo(1)",
            "return package.path",
            "setfenv(1, {}) return 1",
        ] {
            let error = run(&mut interpreter, text).unwrap_err();
            let StoreError::Refused { detail, .. } = error else { panic!("{text}: {error:?}") };
            assert!(detail.contains("global variable"), "{text}: {detail}");
        }
    }
}
