-- The scripts run inside Redis, Valkey and the companion's memory store: Lua 5.1 with what a
-- store gives to scripts, and without the libraries that it takes away.
std = "lua51"
read_globals = { "redis", "KEYS", "ARGV" }
not_globals = { "dofile", "io", "loadfile", "os", "package", "print", "require" }
max_line_length = 110

-- wrk calls what this one defines, in a Lua of its own.
files["bench/keys.lua"] = { std = "luajit", globals = { "init", "request", "done", "print" }, read_globals = { "wrk" } }
