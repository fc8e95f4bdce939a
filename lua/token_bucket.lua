-- Decides a batch of takes over token buckets, one take after the other, each all or none.
--
-- KEYS   the key of each charge, in the order of ARGV; a key may come again in a later take
-- ARGV   [1] the number of takes; then for each take the number of its charges, then for each charge:
--          capacity          tokens of a full bucket
--          parts_per_token   parts that one token is counted in
--          parts_per_micro   parts that come back in a microsecond
--          cost              tokens to take
--          enforced          1, or 0 for a shadow, which never refuses
-- Reply  integers: for each take its verdict, then three for each of its charges
--          verdict     1 every enforced charge fitted and whatever fits was charged
--                      0 one did not fit; nothing was charged
--                     -1 the state of a key is unreadable; nothing was charged and zeros follow
--          remaining   whole tokens left after the decision
--          wait_us     microseconds until the cost fits: 0 it did, -1 never
--          full_us     microseconds until the bucket is full
--
-- A key holds "SPENT PARTS_PER_TOKEN PARTS_PER_MICRO UPDATED_US"; a full bucket is the absence of its key.
--
-- The algorithm, the meaning of parts and the reference that this script equals to the microsecond are in
-- limiter/src/bucket.rs and limiter/src/quota.rs. There all numbers are whole; here they are doubles that
-- hold whole numbers: a bucket has at most 2^52 parts, so that the sum of two levels is exact too.

-- What a state may hold; anything else was not written by this script.
local MAX_PARTS = 2 ^ 52
local MAX_PARTS_PER_TOKEN = 86400000000
local MAX_MICROS = 2 ^ 53

local UNREADABLE, NEVER = -1, -1

local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])

-- Exact for dividends up to 2^53: the remainder is taken away before the division.
local function div_floor(dividend, divisor)
  return (dividend - dividend % divisor) / divisor
end

local function div_ceil(dividend, divisor)
  local remainder = dividend % divisor
  local quotient = (dividend - remainder) / divisor
  if remainder > 0 then
    return quotient + 1
  end
  return quotient
end

-- ceil(factor * to / from) for factor < from, where the product may exceed 2^53: long division with 15 bits
-- of `to` at a time. Remainder and factor are below 2^37, so each dividend is below 2^53.
local function scale_ceil(factor, to, from)
  local quotient, remainder = 0, 0
  for _, weight in ipairs({ 2 ^ 30, 2 ^ 15, 1 }) do
    local digit = div_floor(to, weight) % 2 ^ 15
    local dividend = remainder * 2 ^ 15 + factor * digit
    remainder = dividend % from
    quotient = quotient * 2 ^ 15 + (dividend - remainder) / from
  end
  if remainder > 0 then
    return quotient + 1
  end
  return quotient
end

-- The spent parts of a state in the parts of a quota, rounded up and at most a full bucket.
local function rescale(state, quota)
  local spent = state.spent
  if state.parts_per_token ~= quota.parts_per_token then
    local tokens = div_floor(spent, state.parts_per_token)
    if tokens >= quota.capacity then
      return quota.parts
    end
    local rest = spent % state.parts_per_token
    spent = tokens * quota.parts_per_token + scale_ceil(rest, quota.parts_per_token, state.parts_per_token)
  end
  -- A capacity that was lowered leaves an empty bucket, not a debt.
  return math.min(spent, quota.parts)
end

-- The state at present and in the parts of a quota, as a new one.
local function settle(state, quota)
  local spent, updated_us = rescale(state, quota), state.updated_us
  if updated_us - now_us > div_ceil(quota.parts, quota.parts_per_micro) then
    -- The clock had run ahead by more than a whole refill: without this the client would be shut out until
    -- it has caught up.
    updated_us = now_us
  elseif now_us > updated_us then
    local elapsed_us = now_us - updated_us
    -- Compared before it is multiplied: a long absence must not leave the exact range.
    if elapsed_us >= div_ceil(spent, quota.parts_per_micro) then
      spent = 0
    else
      spent = spent - elapsed_us * quota.parts_per_micro
    end
    updated_us = now_us
  end
  return {
    spent = spent,
    parts_per_token = quota.parts_per_token,
    parts_per_micro = quota.parts_per_micro,
    updated_us = updated_us,
  }
end

-- True where a settled state must be written though nothing was taken. Time alone can be read again from
-- the old state, so that a refusal is no write. An edited rate changes how long the key must live, and a
-- healed clock would not heal if nobody noted it.
local function must_write(state, settled)
  return settled.spent > 0
    and (
      settled.parts_per_token ~= state.parts_per_token
      or settled.parts_per_micro ~= state.parts_per_micro
      or settled.updated_us < state.updated_us
    )
end

-- A state from the future refills only once the clock is there.
local function ahead_us(state)
  return math.max(state.updated_us - now_us, 0)
end

local function wait_us(state, quota, cost)
  if cost > quota.capacity then
    return NEVER
  end
  local missing = cost * quota.parts_per_token - (quota.parts - state.spent)
  if missing <= 0 then
    return 0
  end
  return div_ceil(missing, quota.parts_per_micro) + ahead_us(state)
end

local function full_us(state)
  if state.spent == 0 then
    return 0
  end
  return div_ceil(state.spent, state.parts_per_micro) + ahead_us(state)
end

-- The state that a value of the store says, nil where it says none.
local function parse(value)
  local spent, parts_per_token, parts_per_micro, updated_us =
    string.match(value, '^(%d+) (%d+) (%d+) (%d+)$')
  spent, updated_us = tonumber(spent), tonumber(updated_us)
  parts_per_token, parts_per_micro = tonumber(parts_per_token), tonumber(parts_per_micro)
  if not spent or spent > MAX_PARTS or updated_us > MAX_MICROS then
    return nil
  end
  if parts_per_token < 1 or parts_per_token > MAX_PARTS_PER_TOKEN or parts_per_micro < 1 then
    return nil
  end
  return {
    spent = spent,
    parts_per_token = parts_per_token,
    parts_per_micro = parts_per_micro,
    updated_us = updated_us,
  }
end

-- The store's error as a reply. Redis before 7 puts a place in front of the code, as in
-- "@user_script: 12: -READONLY You can't write against a read only replica."
local function as_reply(failure)
  return { err = string.match(failure.err, '^@user_script: %d+: %-?(.*)') or failure.err }
end

-- Every key of the batch is read once and written once, however often it comes: states holds what was read
-- and what takes made of it, written the keys whose state is to be written.
local states, written, written_keys = {}, {}, {}

-- The state of a key: true where there is none, false where it is unreadable, or nil and the store's error.
local function read(key)
  if states[key] ~= nil then
    return states[key]
  end
  local value = redis.pcall('GET', key)
  local state
  if not value then
    state = true
  elseif type(value) == 'string' then
    state = parse(value) or false
  elseif string.find(value.err, '^WRONGTYPE') then
    state = false
  else
    return nil, as_reply(value)
  end
  states[key] = state
  return state
end

local function write(key, state)
  states[key] = state
  if not written[key] then
    written[key] = true
    table.insert(written_keys, key)
  end
end

local next_key, next_argument = 1, 2

-- The charges of the next take: KEYS and ARGV become named fields here and nowhere else.
local function read_charges()
  local charges = {}
  local count = tonumber(ARGV[next_argument])
  next_argument = next_argument + 1
  for index = 1, count do
    local capacity, parts_per_token = tonumber(ARGV[next_argument]), tonumber(ARGV[next_argument + 1])
    charges[index] = {
      key = KEYS[next_key],
      quota = {
        capacity = capacity,
        parts = capacity * parts_per_token,
        parts_per_token = parts_per_token,
        parts_per_micro = tonumber(ARGV[next_argument + 2]),
      },
      cost = tonumber(ARGV[next_argument + 3]),
      enforced = ARGV[next_argument + 4] == '1',
    }
    next_key = next_key + 1
    next_argument = next_argument + 5
  end
  return charges
end

local reply = {}

local function answer(number)
  reply[#reply + 1] = number
end

-- Decides one take and appends its answer. Returns the store's error where it cannot be read.
local function decide(charges)
  local readable = true
  for _, charge in ipairs(charges) do
    local state, failure = read(charge.key)
    if failure then
      return failure
    end
    charge.state = state
    readable = readable and state
  end
  if not readable then
    answer(UNREADABLE)
    for _ = 1, 3 * #charges do
      answer(0)
    end
    return nil
  end

  -- All are asked before one is charged: a refused take must leave no trace on any limit.
  local admitted = true
  for _, charge in ipairs(charges) do
    local quota = charge.quota
    if charge.state == true then
      local full = { spent = 0, parts_per_token = quota.parts_per_token, updated_us = now_us }
      charge.settled = settle(full, quota)
    else
      charge.settled = settle(charge.state, quota)
    end
    charge.wait_us = wait_us(charge.settled, quota, charge.cost)
    admitted = admitted and (charge.wait_us == 0 or not charge.enforced)
  end

  answer(admitted and 1 or 0)
  for _, charge in ipairs(charges) do
    local settled, quota = charge.settled, charge.quota
    if admitted and charge.wait_us == 0 then
      settled.spent = settled.spent + charge.cost * quota.parts_per_token
      write(charge.key, settled)
    elseif charge.state ~= true and must_write(charge.state, settled) then
      write(charge.key, settled)
    end
    answer(div_floor(quota.parts - settled.spent, quota.parts_per_token))
    answer(charge.wait_us)
    answer(full_us(settled))
  end
  return nil
end

for _ = 1, tonumber(ARGV[1]) do
  local failure = decide(read_charges())
  if failure then
    return failure
  end
end

-- Where the store refuses writes, it refuses the first, so none is half done.
for _, key in ipairs(written_keys) do
  local state = states[key]
  local value = string.format(
    '%.0f %.0f %.0f %.0f',
    state.spent,
    state.parts_per_token,
    state.parts_per_micro,
    state.updated_us
  )
  -- Later than full by less than two milliseconds, never before.
  local expire_ms = div_floor(full_us(state), 1000) + 1
  local outcome = redis.pcall('SET', key, value, 'PX', string.format('%.0f', expire_ms))
  if type(outcome) == 'table' and outcome.err then
    return as_reply(outcome)
  end
end

return reply
