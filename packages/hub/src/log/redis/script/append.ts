/** Appends, invalidations and ends: the steps that assign places. Each is decided before its first write. */
export const append = String.raw`
-- Per channel, what it would retain. Gives the channel that would retain too much, or nil.
local function overRetaining(entries, channels)
  local sizes, values = {}, {}
  for _, entry in ipairs(entries) do
    if entry.kind == 'k' or entry.kind == 'f' then
      local channel = entry.channel
      local size = sizes[channel]
      if not size then
        size = { keys = redis.call('HLEN', retainedOf(channel)), bytes = channels[channel].retained }
        sizes[channel] = size
        values[channel] = {}
      end
      local before = values[channel][entry.key]
      if before == nil then
        local held = redis.call('HGET', retainedOf(channel), entry.key)
        before = held and tonumber(string.match(held, '^%d+')) or -1
      end
      if before >= 0 then
        size.keys = size.keys - 1
        size.bytes = size.bytes - before
      end
      if entry.kind == 'k' then
        size.keys = size.keys + 1
        size.bytes = size.bytes + entry.retainCost
        values[channel][entry.key] = entry.retainCost
      else
        values[channel][entry.key] = -1
      end
    end
  end
  for channel, size in pairs(sizes) do
    if size.keys > retainKeys or size.bytes > retainBytes then return channel end
  end
end

local function retain(channel, it, entry, id, value)
  local key = retainedOf(channel)
  local held = redis.call('HGET', key, entry.key)
  if held then it.retained = it.retained - tonumber(string.match(held, '^%d+')) end
  if entry.kind == 'k' then
    redis.call('HSET', key, entry.key, entry.retainCost .. ' ' .. id .. ' ' .. value)
    it.retained = it.retained + entry.retainCost
    redis.call('ZADD', keyedKey, 0, channel)
  else
    redis.call('HDEL', key, entry.key)
    if redis.call('EXISTS', key) == 0 then redis.call('ZREM', keyedKey, channel) end
  end
end

local function forgetKeys(now)
  for _ = 1, 64 do
    local oldest = redis.call('ZRANGE', onceOrderKey, 0, 0, 'WITHSCORES')
    if not oldest[1] then return end
    if redis.call('ZCARD', onceOrderKey) <= onceKeys and now - tonumber(oldest[2]) <= onceAgeMs then return end
    redis.call('ZREM', onceOrderKey, oldest[1])
    redis.call('HDEL', onceKey, oldest[1])
  end
end

-- One append: all its entries, or none and why. Nothing is written before it is decided.
local function appendEntries(log, channels, now, digest, hash, from, to)
  if digest ~= '' then
    local heldHash, at, first = string.match(redis.call('HGET', onceKey, digest) or '', '^(%S+) (%S+) (%S+)$')
    if heldHash and now - tonumber(at) <= onceAgeMs then
      if heldHash ~= hash then return 'key-reused' end
      return 'repeated ' .. first .. ' ' .. at
    end
  end
  local entries, isKept = {}, false
  for index = from, to, 6 do
    local channel, kind = ARGV[index], ARGV[index + 1]
    if not channels[channel] then channels[channel] = openChannel(log, channel) end
    if channels[channel].ended ~= '-' then return 'ended ' .. channel end
    entries[#entries + 1] = {
      channel = channel, kind = kind, cost = tonumber(ARGV[index + 2]), key = ARGV[index + 3],
      retainCost = tonumber(ARGV[index + 4]), body = ARGV[index + 5],
    }
    isKept = isKept or kind == 'k' or kind == 'f'
  end
  local full = isKept and overRetaining(entries, channels)
  if full then return 'full ' .. full end
  if not nextPlace(log.last, now) then return 'counted-out' end

  local first
  for _, entry in ipairs(entries) do
    local it = channels[entry.channel]
    local id, value = feed(log, it, now, entry.body)
    first = first or id
    if entry.kind ~= 'l' then
      redis.call('XADD', streamOf(entry.channel), id, 'e', value)
      if it.count == 0 then
        it.oldestAt = now
        it.base = it.total
      end
      it.count = it.count + 1
      it.total = it.total + entry.cost
      it.newest = id
      it.isChanged = true
      if entry.kind ~= 'e' then retain(entry.channel, it, entry, id, value) end
    end
  end
  if digest ~= '' then
    redis.call('HSET', onceKey, digest, hash .. ' ' .. now .. ' ' .. first)
    redis.call('ZADD', onceOrderKey, now, digest)
    forgetKeys(now)
  end
  return 'appended ' .. first .. ' ' .. now
end

-- Appends that came together, one after the other: what a call costs is shared by them.
-- ARGV: append, seen, now, number of this call, then for each: digest and hash of its idempotency key, its number of
-- entries, and six for each of them.
steps.append = function()
  local log, why = openLog(ARGV[2])
  if not log then return why end
  if redis.call('HLEN', channelsKey) ~= log.channels then return { '!damaged' } end
  local now, number = clock(ARGV[3]), ARGV[4]

  -- A client library, or the hub itself, sends again what was not answered. No hub has more under way than slots.
  local slot = tonumber(number) % slots
  local known, answer = string.match(redis.call('HGET', writerKey, slot) or '', '^(%d+)\n(.*)$')
  if known == number then return { log.epoch, answer } end

  local channels, outcomes = {}, {}
  local index = 5
  while index <= #ARGV do
    local to = index + 2 + 6 * tonumber(ARGV[index + 2])
    outcomes[#outcomes + 1] = appendEntries(log, channels, now, ARGV[index], ARGV[index + 1], index + 3, to)
    index = to + 1
  end
  for channel, it in pairs(channels) do
    if it.isChanged then
      trim(channel, it, now)
      saveChannel(log, channel, it)
    end
  end
  answer = table.concat(outcomes, '\n')
  redis.call('HSET', writerKey, slot, number .. '\n' .. answer)
  if slot % 512 == 1 then redis.call('PEXPIRE', writerKey, writerTtlMs) end
  saveLog(log, now)
  return { log.epoch, answer }
end

-- ARGV: invalidate, seen, now, channel, body
steps.invalidate = function()
  local log, why = openLog(ARGV[2])
  if not log then return why end
  local now, channel = clock(ARGV[3]), ARGV[4]
  local it = openChannel(log, channel)
  local previous = it.newest
  local id = feed(log, it, now, ARGV[5])
  redis.call('DEL', streamOf(channel), retainedOf(channel))
  redis.call('ZREM', keyedKey, channel)
  it.newest, it.trimmed, it.void = id, id, id
  it.base, it.count, it.emptySince, it.retained = it.total, 0, now, 0
  saveChannel(log, channel, it)
  saveLog(log, now)
  return { id, tostring(now), previous, log.epoch }
end

-- ARGV: end, seen, now, channel, body
steps['end'] = function()
  local log, why = openLog(ARGV[2])
  if not log then return why end
  local now, channel = clock(ARGV[3]), ARGV[4]
  local it = openChannel(log, channel)
  if it.ended == '-' then
    local previous = it.newest
    local id = feed(log, it, now, ARGV[5])
    it.ended = id .. ',' .. now .. ',' .. previous
    if it.count == 0 then it.emptySince = now end
    saveChannel(log, channel, it)
    saveLog(log, now)
  end
  local id, at, previous = string.match(it.ended, '^(%S+),(%S+),(%S+)$')
  return { id, at, previous, log.epoch }
end
`
