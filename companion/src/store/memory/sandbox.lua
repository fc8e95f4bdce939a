-- What scripts of the memory store see beside Lua's base, string, table and math libraries: `redis` as
-- Redis offers it, KEYS and ARGV, and no way to keep anything from one call to the next but the keys.
--
-- Takes `execute`, which runs one command and returns its reply, an error as {err = …}. Returns a function
-- that runs a compiled script with its KEYS and ARGV.

local execute = ...
local globals, rawset, pcall, type, tostring = _G, rawset, pcall, type, tostring

local function with_code(message)
  if string.find(message, '^%u+ ') then
    return message
  end
  return 'ERR ' .. message
end

rawset(globals, 'redis', {
  pcall = execute,
  call = function(...)
    local reply = execute(...)
    if type(reply) == 'table' and reply.err then
      error(reply, 0)
    end
    return reply
  end,
  error_reply = function(message)
    return { err = with_code(message) }
  end,
  status_reply = function(message)
    return { ok = message }
  end,
})

local banned = { 'collectgarbage', 'dofile', 'getfenv', 'loadfile', 'newproxy', 'print', 'setfenv' }
for _, name in ipairs(banned) do
  globals[name] = nil
end

setmetatable(globals, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
  __newindex = function(_, name)
    error("Script attempted to create global variable '" .. tostring(name) .. "'", 2)
  end,
})

return function(script, keys, arguments)
  rawset(globals, 'KEYS', keys)
  rawset(globals, 'ARGV', arguments)
  local succeeded, result = pcall(script)
  if succeeded then
    return result
  end
  if type(result) == 'table' and result.err then
    return { err = result.err }
  end
  return { err = 'ERR Error running script: ' .. tostring(result) }
end
