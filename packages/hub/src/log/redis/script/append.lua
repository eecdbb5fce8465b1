-- Appends, invalidations and ends: the steps that assign positions. Each step decides before its first write.

-- The first byte of a body: an event with a key, an event that forgets its key, a live event.
local byte = string.byte
local hasKey, forgetsKey, isLive = byte('k'), byte('f'), byte('l')

-- The channel that would retain too much with these entries, or nil.
local function overRetaining(entries, channels)
  local sizes, values = {}, {}
  for _, entry in ipairs(entries) do
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
    if entry.kind == hasKey then
      size.keys = size.keys + 1
      size.bytes = size.bytes + entry.cost
      values[channel][entry.key] = entry.cost
    else
      values[channel][entry.key] = -1
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
  if entry.kind == hasKey then
    redis.call('HSET', key, entry.key, entry.cost .. ' ' .. id .. ' ' .. value)
    it.retained = it.retained + entry.cost
    redis.call('ZADD', keyedKey, 0, channel)
  else
    redis.call('HDEL', key, entry.key)
    if redis.call('EXISTS', key) == 0 then redis.call('ZREM', keyedKey, channel) end
  end
end

-- A publish under an idempotency key comes with a digest of the key, followed by a tag of its publisher.
local function keyOf(digest) return string.sub(digest, 1, onceDigestChars) end
local function publisherOf(digest) return string.sub(digest, onceDigestChars + 1) end

-- Forgets the oldest keys. The clock may have been ahead when a key came. Such a key counts from now on: it would take its capacity
-- until the clock gets there.
local function forgetKeys(now)
  for _ = 1, 64 do
    local newest = redis.call('ZRANGE', onceOrderKey, 0, 0, 'REV', 'WITHSCORES')
    if not newest[1] or tonumber(newest[2]) <= now then break end
    redis.call('ZADD', onceOrderKey, now, newest[1])
  end
  for _ = 1, 64 do
    local oldest = redis.call('ZRANGE', onceOrderKey, 0, 0, 'WITHSCORES')
    if not oldest[1] then return end
    local age = now - tonumber(oldest[2])
    local goes = age > onceAgeMs or (age > onceHorizonMs and redis.call('ZCARD', onceOrderKey) > onceKeys)
    if not goes then return end
    redis.call('ZREM', onceOrderKey, oldest[1])
    redis.call('HDEL', onceKey, keyOf(oldest[1]))
    local publisher = publisherOf(oldest[1])
    if redis.call('HINCRBY', onceCountsKey, publisher, -1) <= 0 then redis.call('HDEL', onceCountsKey, publisher) end
  end
end

-- A publisher may have as many keys as are free. While half of the capacity is free, that is always so.
local function hasCapacityForKey(now, digest)
  if redis.call('ZCARD', onceOrderKey) * 2 < onceCapacity then return true end
  forgetKeys(now)
  local own = tonumber(redis.call('HGET', onceCountsKey, publisherOf(digest)) or 0)
  return own < onceCapacity - redis.call('ZCARD', onceOrderKey)
end

-- Most appends are one entry without keys, and have three arguments: cost, channel, body. Any other append starts with a head:
-- the number of entries, and the digest and hash of its idempotency key. Returns these, and the index of its first entry.
local headMark = byte('#')
local function headOf(args, index)
  local count, digest, hash = string.match(args[index], '^#(%d+) (%S*) (%S*)$')
  return tonumber(count), digest, hash, index + 1
end

-- The index of the next entry after a head. An entry takes three arguments, and two more when it has a key.
local function nextEntry(args, index)
  local kind = byte(args[index + 2])
  if kind == hasKey or kind == forgetsKey then return index + 5 end
  return index + 3
end

-- Reads all channels of a call at once.
local function openChannels(log, args, from)
  local channels, names = {}, {}
  local function add(channel)
    if channels[channel] then return end
    channels[channel] = true
    names[#names + 1] = channel
  end
  local index, last = from, #args
  while index <= last do
    if byte(args[index]) ~= headMark then
      add(args[index + 1])
      index = index + 3
    else
      local count, _, _, first = headOf(args, index)
      index = first
      for _ = 1, count do
        add(args[index])
        index = nextEntry(args, index)
      end
    end
  end
  for first = 1, #names, 1000 do
    local to = math.min(first + 999, #names)
    local found = redis.call('HMGET', channelsKey, unpack(names, first, to))
    for at = first, to do
      local packed = found[at - first + 1]
      channels[names[at]] = packed and knownChannel(log, packed) or unknownChannel(log)
    end
  end
  return channels
end

local function saveChannels(channels, now)
  local fields = {}
  for channel, it in pairs(channels) do
    if it.isChanged then
      trim(channel, it, now)
      if it.isNew then enroll(channel, it) end
      fields[#fields + 1] = channel
      fields[#fields + 1] = packChannel(channel, it)
    end
  end
  for first = 1, #fields, 2000 do
    redis.call('HSET', channelsKey, unpack(fields, first, math.min(first + 1999, #fields)))
  end
end

-- Writes an entry to its channel, unless it is a live event.
local function hold(channel, it, now, id, value, cost, kind)
  if kind == isLive then return end
  redis.call('XADD', streamOf(channel), id, 'e', value)
  if it.count == 0 then
    it.oldestAt = now
    it.base = it.total
    it.first = id
  end
  it.count = it.count + 1
  it.total = it.total + cost
  it.newest = id
  it.isChanged = true
end

-- Appends one entry without keys. Returns its position, or why it is rejected.
local function appendPlain(log, it, now, cost, channel, body)
  if it.ended ~= '-' then return 'ended ' .. channel end
  if not hybrid and log.seq >= maxSeq then return 'counted-out' end
  local id, value = feed(log, it, now, body)
  hold(channel, it, now, id, value, cost, byte(body))
  return id
end

-- Appends all entries of one append, and returns the position of the first. Or writes none, and returns why it is rejected.
local function appendEntries(log, channels, now, args, from, count, digest, hash)
  if digest ~= '' then
    local heldHash, at, first = string.match(redis.call('HGET', onceKey, keyOf(digest)) or '', '^(%S+) (%S+) (%S+)$')
    if heldHash and now - tonumber(at) <= onceAgeMs then
      if heldHash ~= hash then return 'key-reused' end
      return 'repeated ' .. first .. ' ' .. at
    end
    if not hasCapacityForKey(now, digest) then return 'crowded' end
  end
  local kept
  local index = from
  for _ = 1, count do
    local channel = args[index]
    if channels[channel].ended ~= '-' then return 'ended ' .. channel end
    local next = nextEntry(args, index)
    if next == index + 5 then
      kept = kept or {}
      kept[#kept + 1] = {
        channel = channel, kind = byte(args[index + 2]), key = args[index + 3], cost = tonumber(args[index + 4]),
      }
    end
    index = next
  end
  local full = kept and overRetaining(kept, channels)
  if full then return 'full ' .. full end
  if not hybrid and log.seq >= maxSeq then return 'counted-out' end

  local first
  local keptSoFar = 0
  index = from
  for _ = 1, count do
    local channel, body = args[index], args[index + 2]
    local it = channels[channel]
    local id, value = feed(log, it, now, body)
    first = first or id
    hold(channel, it, now, id, value, args[index + 1], byte(body))
    local next = nextEntry(args, index)
    if next == index + 5 then
      keptSoFar = keptSoFar + 1
      retain(channel, it, kept[keptSoFar], id, value)
    end
    index = next
  end
  if digest ~= '' then
    redis.call('HSET', onceKey, keyOf(digest), hash .. ' ' .. whole(now) .. ' ' .. first)
    -- ZADD adds nothing for a key that is used again after its time: it is counted already.
    if redis.call('ZADD', onceOrderKey, now, digest) == 1 then
      redis.call('HINCRBY', onceCountsKey, publisherOf(digest), 1)
    end
    forgetKeys(now)
  end
  return first
end

-- Makes several appends, one after the other, so that they share the cost of a call.
-- ARGV: number of this call, then each append: cost, channel and body; or its head, and for each of its entries channel, cost,
-- body, and for an entry with a key the key and the cost of retaining it.
dated.append = function(log, now)
  local number = ARGV[4]

  -- A client library, or the hub itself, repeats a call without an answer. No hub has more calls under way than there are slots.
  local slot = tonumber(number) % slots
  local known, at, answer = string.match(redis.call('HGET', writerKey, slot) or '', '^(%d+) (%d+)\n(.*)$')
  if known == number then return { log.epoch, at, answer } end

  local args, index = ARGV, 5
  local last = #args
  local channels, outcomes = openChannels(log, args, index), {}
  while index <= last do
    if byte(args[index]) ~= headMark then
      local channel = args[index + 1]
      outcomes[#outcomes + 1] = appendPlain(log, channels[channel], now, args[index], channel, args[index + 2])
      index = index + 3
    else
      local count, digest, hash, from = headOf(args, index)
      outcomes[#outcomes + 1] = appendEntries(log, channels, now, args, from, count, digest, hash)
      index = from
      for _ = 1, count do index = nextEntry(args, index) end
    end
  end
  saveChannels(channels, now)
  at, answer = whole(now), table.concat(outcomes, '\n')
  redis.call('HSET', writerKey, slot, number .. ' ' .. at .. '\n' .. answer)
  -- A new key gets its time to live, too: the key of a hub that publishes seldom has expired since its last call.
  if not known or slot % 512 == 1 then redis.call('PEXPIRE', writerKey, writerTtlMs) end
  shrink(log, now, 128 + #outcomes)
  return { log.epoch, at, answer }
end

-- ARGV: channel, body
dated.invalidate = function(log, now)
  local channel = ARGV[4]
  local it = openChannel(log, channel)
  local previous = it.newest
  local id = feed(log, it, now, ARGV[5])
  redis.call('DEL', streamOf(channel), retainedOf(channel))
  redis.call('ZREM', keyedKey, channel)
  it.newest, it.trimmed, it.invalidated = id, id, id
  it.base, it.count, it.emptySince, it.retained = it.total, 0, now, 0
  saveChannel(channel, it)
  return { id, tostring(now), previous, log.epoch }
end

-- ARGV: channel, body
dated['end'] = function(log, now)
  local channel = ARGV[4]
  local it = openChannel(log, channel)
  if it.ended == '-' then
    local previous = it.newest
    local id = feed(log, it, now, ARGV[5])
    it.ended = id .. ',' .. now .. ',' .. previous
    if it.count == 0 then it.emptySince = now end
    saveChannel(channel, it)
  end
  local id, at, previous = string.match(it.ended, '^(%S+),(%S+),(%S+)$')
  return { id, at, previous, log.epoch }
end
