-- Decides a batch of takes over token buckets, one take after the other, each all or none.
--
-- KEYS   the key of each charge, in the order of ARGV; a key may come again in a later take
-- ARGV   [1] the number of takes; then for each take the number of its charges, then for each charge:
--          capacity          tokens of a full bucket
--          parts_per_token   parts that one token is counted in
--          parts_per_micro   parts that come back in a microsecond
--          cost              tokens to take
--          enforced          1, or 0 for a shadow, which never refuses
--          lease             0, or 1 and then what is asked of leases:
--            holder          who holds them, letters and digits
--            id              the new lease's number
--            want            tokens wanted beyond the cost
--            ttl_us          microseconds for which they may be spent
--            returns         the number of leases that are given back; then for each:
--              id            its number
--              tokens        what was not spent of it
--          report            0, or 1 and then what was let through without asking, numbered token by token:
--            holder          who counts, letters and digits
--            from            the number up to which all is known to be charged
--            to              the number up to which all is to be charged
--            ttl_us          microseconds for which the holder is remembered
-- Reply  integers: for each take its verdict, then five for each of its charges
--          verdict     1 every enforced charge fitted and whatever fits was charged
--                      0 one did not fit; nothing was charged but what was reported
--                     -1 the state of a key is unreadable; nothing was charged and zeros follow
--          remaining   whole tokens left after the decision
--          wait_us     microseconds until the cost fits: 0 it did, -1 never
--          full_us     microseconds until the bucket is full
--          granted     tokens of the new lease
--          proxies     holders that are remembered for their reports, and the one that reports; 0 without one
--
-- A key holds "SPENT PARTS_PER_TOKEN PARTS_PER_MICRO UPDATED_US"; a full bucket is the absence of its key.
-- After that comes " HOLDER:ID:TOKENS:GRANTED_US:TTL_US" for each lease that is out: granted, not given back
-- and not ended by the key's own time, which never goes back. Last comes " HOLDER:COUNTED:0:SEEN_US:TTL_US"
-- for each reporter, a holder that reports, with the number of its last token that was charged; a lease never
-- has 0 tokens. Where there are reporters, a full bucket has a key too.
--
-- The algorithm, the meaning of parts and the reference that this script equals to the microsecond are in
-- limiter/src/bucket.rs, limiter/src/quota.rs and limiter/src/authority.rs. There all numbers are whole;
-- here they are doubles that hold whole numbers: a bucket has at most 2^52 parts, so that the sum of two
-- levels is exact too.

-- What a state may hold; anything else was not written by this script.
local MAX_PARTS = 2 ^ 52
local MAX_PARTS_PER_TOKEN = 86400000000
local MAX_MICROS = 2 ^ 53
local MAX_TTL_US = 60000000
local MAX_HOLDER_BYTES = 32
local MAX_LEASE_ID = 2 ^ 53 - 1

-- The most leases of a key; while so many are out, no more are granted.
local MAX_LEASES = 128

-- The most reporters of a key; what others report is charged as it comes.
local MAX_REPORTERS = 128

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

-- Spent parts of a state in the parts of a quota, rounded up and at most what is counted exactly. More than a
-- full bucket where the capacity was lowered: nothing is forgiven.
local function rescale(spent, state, quota)
  local from, to = state.parts_per_token, quota.parts_per_token
  if from ~= to then
    local tokens = div_floor(spent, from)
    if tokens * to >= MAX_PARTS then
      return MAX_PARTS
    end
    spent = tokens * to + scale_ceil(spent % from, to, from)
  end
  return math.min(spent, MAX_PARTS)
end

-- What is left of spent parts after some time. Compared before it is multiplied: a long absence must not
-- leave the exact range.
local function refilled(spent, elapsed_us, parts_per_micro)
  if elapsed_us >= div_ceil(spent, parts_per_micro) then
    return 0
  end
  return spent - elapsed_us * parts_per_micro
end

-- Those leases or reporters that have not ended, as a new list.
local function lasting(entries, clock_us)
  local list = {}
  for _, entry in ipairs(entries) do
    if clock_us - entry.since_us < entry.ttl_us then
      list[#list + 1] = entry
    end
  end
  return list
end

-- True where a state was counted at another rate.
local function is_edited(state, quota)
  return quota.parts_per_token ~= state.parts_per_token or quota.parts_per_micro ~= state.parts_per_micro
end

-- The state at present and in the parts of a quota, as a new one.
local function settle(state, quota)
  local updated_us, leases, reporters = state.updated_us, state.leases, state.reporters
  if is_edited(state, quota) then
    -- What time has refilled since a lease was granted cannot be told any more, so nothing is taken back.
    leases = {}
  end
  local spent
  if updated_us - now_us > div_ceil(quota.parts, quota.parts_per_micro) then
    -- The clock had run ahead by more than a whole refill: without this the client would be shut out until
    -- it has caught up. What leases and reporters say of time is worth nothing then.
    spent, updated_us = rescale(state.spent, state, quota), now_us
    leases, reporters = {}, {}
  else
    local elapsed_us = math.max(now_us - updated_us, 0)
    updated_us = math.max(updated_us, now_us)
    -- A bucket that was full before by its own rate is full: without reporters its key would have expired.
    -- Else the slower of two rates refills: while two limits are in use for a key, neither may be gone round.
    if elapsed_us >= div_ceil(state.spent, state.parts_per_micro) then
      spent = 0
    elseif state.parts_per_micro / state.parts_per_token < quota.parts_per_micro / quota.parts_per_token then
      spent = rescale(refilled(state.spent, elapsed_us, state.parts_per_micro), state, quota)
    else
      spent = refilled(rescale(state.spent, state, quota), elapsed_us, quota.parts_per_micro)
    end
  end
  return {
    spent = spent,
    parts_per_token = quota.parts_per_token,
    parts_per_micro = quota.parts_per_micro,
    updated_us = updated_us,
    leases = lasting(leases, updated_us),
    reporters = lasting(reporters, updated_us),
  }
end

-- True where a settled state must be written though nothing was taken. Time alone can be read again from
-- the old state, so that a refusal is no write. An edited rate changes how long the key must live, and a
-- healed clock would not heal if nobody noted it.
local function must_write(state, settled)
  return settled.spent > 0 and (is_edited(state, settled) or settled.updated_us < state.updated_us)
end

-- A state from the future refills only once the clock is there.
local function ahead_us(state)
  return math.max(state.updated_us - now_us, 0)
end

local function tokens_left(state, quota)
  return div_floor(math.max(quota.parts - state.spent, 0), quota.parts_per_token)
end

local function wait_us(state, quota, cost)
  if cost > quota.capacity then
    return NEVER
  end
  local missing = state.spent + cost * quota.parts_per_token - quota.parts
  -- Nothing always fits, also where a lowered capacity is exceeded already.
  if cost == 0 or missing <= 0 then
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

-- Microseconds for which something would be lost with a settled state: until the bucket is full and the last
-- reporter has ended.
local function matters_us(state)
  local longest_us = full_us(state)
  for _, reporter in ipairs(state.reporters) do
    longest_us = math.max(longest_us, reporter.since_us - now_us + reporter.ttl_us)
  end
  return longest_us
end

-- The place of a name in a list of leases or reporters, nil where it is not in it.
local function place(entries, name)
  for index, entry in ipairs(entries) do
    if entry.name == name then
      return index
    end
  end
  return nil
end

-- The parts that a return of tokens gives back to the bucket. Time has refilled the bucket for what was out,
-- too. Giving that back would hand out this time twice: what can still be given back must never be more than
-- what is spent.
local function credit(lease, tokens, quota, clock_us)
  -- A capacity that was lowered bounds the tokens too, as it does the spent ones.
  local parts = math.min(tokens, lease.tokens, quota.capacity) * quota.parts_per_token
  local age_us = clock_us - lease.since_us
  -- Compared before it is multiplied, as above.
  if age_us >= div_ceil(parts, quota.parts_per_micro) then
    return 0
  end
  return parts - age_us * quota.parts_per_micro
end

-- Takes returns back into a settled state. True where any of them was out.
local function take_back(state, quota, ask)
  local changed = false
  for _, back in ipairs(ask.returns) do
    local index = place(state.leases, ask.holder .. ':' .. back.id)
    -- What is unknown has ended or was given back before.
    if index then
      local lease = table.remove(state.leases, index)
      state.spent = math.max(state.spent - credit(lease, back.tokens, quota, state.updated_us), 0)
      changed = true
    end
  end
  return changed
end

-- Charges what a report says on a settled state, as far as that was not charged before, whether or not it
-- fits. True where the state changes.
local function take_in(state, quota, report)
  local reporters = state.reporters
  local index = place(reporters, report.holder)
  local known = index and reporters[index]
  local counted = known and known.counted or 0
  local tokens = math.max(report.to - math.max(report.from, counted), 0)
  -- What is not exact here is above 2^53, and so beyond the bound as it would be if it were.
  state.spent = math.min(state.spent + tokens * quota.parts_per_token, MAX_PARTS)
  if known then
    -- A holder that is there all the time is not written down each time.
    local age_us = state.updated_us - known.since_us
    local is_fresh = known.ttl_us == report.ttl_us and age_us < div_ceil(known.ttl_us, 2)
    if tokens == 0 and is_fresh then
      return false
    end
    table.remove(reporters, index)
  elseif #reporters >= MAX_REPORTERS then
    return tokens > 0
  end
  counted = math.max(counted, report.to)
  reporters[#reporters + 1] = {
    written = string.format('%s:%.0f:0:%.0f:%.0f', report.holder, counted, state.updated_us, report.ttl_us),
    name = report.holder,
    holder = report.holder,
    counted = counted,
    since_us = state.updated_us,
    ttl_us = report.ttl_us,
  }
  return true
end

-- The holders that are remembered, and the one that reports.
local function count_proxies(state, report)
  return #state.reporters + (place(state.reporters, report.holder) and 0 or 1)
end

-- Grants what can be spared of what is wanted; returns how many tokens that are.
local function grant(state, quota, ask)
  local leases, name = state.leases, ask.holder .. ':' .. ask.id
  -- A request that came twice is granted once.
  if ask.want == 0 or #leases >= MAX_LEASES or place(leases, name) then
    return 0
  end
  local holders, seen = 1, { [ask.holder] = true }
  for _, lease in ipairs(leases) do
    if not seen[lease.holder] then
      holders, seen[lease.holder] = holders + 1, true
    end
  end
  local left = tokens_left(state, quota)
  local tokens = math.min(ask.want, div_floor(left, 2 * holders))
  if tokens > 0 then
    state.spent = state.spent + tokens * quota.parts_per_token
    leases[#leases + 1] = {
      written = string.format('%s:%.0f:%.0f:%.0f', name, tokens, state.updated_us, ask.ttl_us),
      name = name,
      holder = ask.holder,
      tokens = tokens,
      since_us = state.updated_us,
      ttl_us = ask.ttl_us,
    }
  end
  return tokens
end

-- The leases and the reporters that the end of a value says, nil where it says anything else.
local function parse_entries(text, updated_us)
  local leases, reporters, length = {}, {}, 0
  for written, name, holder, number, tokens, since_us, ttl_us in
    string.gmatch(text, ' (((%w+):(%d+)):(%d+):(%d+):(%d+))')
  do
    number, tokens = tonumber(number), tonumber(tokens)
    since_us, ttl_us = tonumber(since_us), tonumber(ttl_us)
    if #holder > MAX_HOLDER_BYTES or number > MAX_LEASE_ID or since_us > updated_us then
      return nil
    end
    if tokens > MAX_PARTS or ttl_us < 1 or ttl_us > MAX_TTL_US then
      return nil
    end
    length = length + 1 + #written
    local entry = { written = written, name = name, holder = holder, since_us = since_us, ttl_us = ttl_us }
    if tokens > 0 then
      entry.tokens = tokens
      leases[#leases + 1] = entry
    else
      -- A holder reports under its own name, without a number.
      entry.name, entry.counted = holder, number
      reporters[#reporters + 1] = entry
    end
  end
  -- A match skips what is none.
  if length < #text or #leases > MAX_LEASES or #reporters > MAX_REPORTERS then
    return nil
  end
  return leases, reporters
end

-- The state that a value of the store says, nil where it says none.
local function parse(value)
  local spent, parts_per_token, parts_per_micro, updated_us, rest =
    string.match(value, '^(%d+) (%d+) (%d+) (%d+)(.*)$')
  spent, updated_us = tonumber(spent), tonumber(updated_us)
  parts_per_token, parts_per_micro = tonumber(parts_per_token), tonumber(parts_per_micro)
  if not spent or spent > MAX_PARTS or updated_us > MAX_MICROS then
    return nil
  end
  if parts_per_token < 1 or parts_per_token > MAX_PARTS_PER_TOKEN or parts_per_micro < 1 then
    return nil
  end
  local leases, reporters = parse_entries(rest, updated_us)
  if not leases then
    return nil
  end
  return {
    spent = spent,
    parts_per_token = parts_per_token,
    parts_per_micro = parts_per_micro,
    updated_us = updated_us,
    leases = leases,
    reporters = reporters,
  }
end

-- The value that says a state.
local function format(state)
  local words = {
    string.format(
      '%.0f %.0f %.0f %.0f',
      state.spent,
      state.parts_per_token,
      state.parts_per_micro,
      state.updated_us
    ),
  }
  for _, entries in ipairs({ state.leases, state.reporters }) do
    for _, entry in ipairs(entries) do
      words[#words + 1] = entry.written
    end
  end
  return table.concat(words, ' ')
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
  -- What can be given back of the leases is never more than what is spent: nothing is lost with them.
  local is_empty = state.spent == 0 and #state.reporters == 0
  states[key] = is_empty or state
  if not written[key] then
    written[key] = true
    table.insert(written_keys, key)
  end
end

local next_key, next_argument = 1, 2

-- The next argument that says what is asked of leases, nil where nothing is.
local function read_ask()
  local asked = ARGV[next_argument] == '1'
  next_argument = next_argument + 1
  if not asked then
    return nil
  end
  local ask = {
    holder = ARGV[next_argument],
    id = ARGV[next_argument + 1],
    want = tonumber(ARGV[next_argument + 2]),
    ttl_us = tonumber(ARGV[next_argument + 3]),
    returns = {},
  }
  local count = tonumber(ARGV[next_argument + 4])
  next_argument = next_argument + 5
  for index = 1, count do
    ask.returns[index] = { id = ARGV[next_argument], tokens = tonumber(ARGV[next_argument + 1]) }
    next_argument = next_argument + 2
  end
  return ask
end

-- The next argument that says what is reported, nil where nothing is.
local function read_report()
  local reported = ARGV[next_argument] == '1'
  next_argument = next_argument + 1
  if not reported then
    return nil
  end
  local report = {
    holder = ARGV[next_argument],
    from = tonumber(ARGV[next_argument + 1]),
    to = tonumber(ARGV[next_argument + 2]),
    ttl_us = tonumber(ARGV[next_argument + 3]),
  }
  next_argument = next_argument + 4
  return report
end

-- The charges of the next take: KEYS and ARGV become named fields here and above, and nowhere else.
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
    charges[index].ask = read_ask()
    charges[index].report = read_report()
  end
  return charges
end

local reply = {}

local function answer(number)
  reply[#reply + 1] = number
end

-- Settles the state of a charge, takes its returns back and its report in, and asks whether its cost fits.
local function prepare(charge)
  local state, quota = charge.state, charge.quota
  if state == true then
    charge.settled = {
      spent = 0,
      parts_per_token = quota.parts_per_token,
      parts_per_micro = quota.parts_per_micro,
      updated_us = now_us,
      leases = {},
      reporters = {},
    }
  else
    charge.settled = settle(state, quota)
    charge.changed = must_write(state, charge.settled)
    if charge.ask and take_back(charge.settled, quota, charge.ask) then
      charge.changed = true
    end
  end
  if charge.report and take_in(charge.settled, quota, charge.report) then
    charge.changed = true
  end
  charge.wait_us = wait_us(charge.settled, quota, charge.cost)
end

-- Charges what fits of an admitted take, keeps what has changed and appends the charge's answer.
local function finish(charge, admitted)
  local settled, quota, granted = charge.settled, charge.quota, 0
  if admitted and charge.wait_us == 0 then
    settled.spent = settled.spent + charge.cost * quota.parts_per_token
    if charge.ask then
      granted = grant(settled, quota, charge.ask)
    end
    charge.changed = charge.changed or charge.cost + granted > 0
  end
  if charge.changed then
    write(charge.key, settled)
  end
  answer(tokens_left(settled, quota))
  answer(charge.wait_us)
  answer(full_us(settled))
  answer(granted)
  answer(charge.report and count_proxies(settled, charge.report) or 0)
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
    for _ = 1, 5 * #charges do
      answer(0)
    end
    return nil
  end

  -- All are asked before one is charged: a refused take must leave no trace on any limit but its
  -- returns and reports.
  local admitted = true
  for _, charge in ipairs(charges) do
    prepare(charge)
    admitted = admitted and (charge.wait_us == 0 or not charge.enforced)
  end

  answer(admitted and 1 or 0)
  for _, charge in ipairs(charges) do
    finish(charge, admitted)
  end
  return nil
end

for _ = 1, tonumber(ARGV[1]) do
  local failure = decide(read_charges())
  if failure then
    return failure
  end
end

-- Where the store refuses writes, it refuses the first, so none is half done. Only what makes room is never
-- refused for want of it, and so comes last.
local emptied = {}
for _, key in ipairs(written_keys) do
  local state = states[key]
  if state == true then
    table.insert(emptied, key)
  else
    -- Later than it stops to matter by less than two milliseconds, never before.
    local expire_ms = div_floor(matters_us(state), 1000) + 1
    local outcome = redis.pcall('SET', key, format(state), 'PX', string.format('%.0f', expire_ms))
    if type(outcome) == 'table' and outcome.err then
      return as_reply(outcome)
    end
  end
end
if #emptied > 0 then
  local outcome = redis.pcall('DEL', unpack(emptied))
  if type(outcome) == 'table' and outcome.err then
    return as_reply(outcome)
  end
end

return reply
