-- The budget of the whole log. The oldest events of all channels go first.

-- Evicts a channel's events up to an age, until so many bytes are gone. Returns how many entries it has looked at.
local function evictOldest(log, channel, now, through, excess, atMost)
  local packed = redis.call('HGET', channelsKey, channel)
  local it = packed and knownChannel(log, packed)
  if not it or not it.counted then
    redis.call('ZREM', agesKey, channel)
    return 1
  end
  -- Reads as many entries as are likely to go, by the mean size in the channel, and at most 256 KB: XRANGE reads the bodies, too.
  local mean = 1 + (it.total - it.base) / math.max(1, it.count)
  local likely = math.min(math.ceil(excess / mean), math.ceil(it.count / 64))
  local atOnce = math.max(1, math.min(64, atMost, likely, math.floor(262144 / mean)))
  local stream = streamOf(channel)
  local looked, stays, header = 0, nil, nil
  for _, entry in ipairs(redis.call('XRANGE', stream, '-', '+', 'COUNT', atOnce + 1)) do
    looked = looked + 1
    header = headerOf(entry[1], entry[2][2])
    if looked > atOnce or header.total - it.base >= excess or ageOf(entry[1]) > through then
      stays = entry[1]
      break
    end
  end
  if stays then
    redis.call('XTRIM', stream, 'MINID', '=', stays)
    it.trimmed = latest(it.trimmed, header.previous)
    it.base, it.oldestAt = header.total, header.at
    it.count = redis.call('XLEN', stream)
    redis.call('ZADD', agesKey, ageOf(stays), channel)
  else
    redis.call('DEL', stream)
    it.trimmed = latest(it.trimmed, it.newest)
    it.base, it.count, it.emptySince = it.total, 0, now
  end
  redis.call('HSET', channelsKey, channel, packChannel(channel, it))
  return math.max(1, looked)
end

-- Evicts the oldest events of all channels, some at a time, while the log is over its budget. Returns whether there is more
-- to evict. A channel evicts its events up to a 64th of the way to the newest event at once. Without that, channels
-- whose events alternate would take turns.
local function shrink(log, now, atMost)
  if not maxHeld then return false end
  local stored = tonumber(redis.call('HGET', logKey, 'held') or 0)
  local left, newest = atMost, hybrid and log.ms or log.seq
  while stored + heldChange > maxHeld do
    if left <= 0 then return true end
    local oldest = redis.call('ZRANGE', agesKey, 0, 1, 'WITHSCORES')
    if not oldest[1] then return false end
    local from = tonumber(oldest[2])
    local through = newest
    if oldest[4] then through = math.max(from + math.floor((newest - from) / 64), tonumber(oldest[4])) end
    left = left - evictOldest(log, oldest[1], now, through, stored + heldChange - maxHeld, left)
  end
  return false
end

-- Answers how many bytes the channels hold.
steps.budget = function()
  return { redis.call('HGET', logKey, 'held') or '0' }
end
