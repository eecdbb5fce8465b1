-- The Lua that all steps share: positions, the state of a channel, and how an entry is written. A position is a text, `ms-seq`,
-- like the id of a stream entry in Redis. Both halves fit into a number of Lua, which holds 53 bits.

-- The steps that hubs ask for. Most get the open log and the time. A dated step assigns positions, and its time is one that they
-- can have. A bare step gets nothing: there may be no log, or one that the hub has to look at first.
local steps, dated, bare = {}, {}, {}

local function split(position)
  local ms, seq = string.match(position, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end

-- Lua itself writes a number with 14 digits, which is too few for a count of bytes. It also goes by way of a fraction, which
-- takes four times as long.
local format = string.format
local function whole(number)
  return format('%d', number)
end

local function text(ms, seq)
  return format('%d-%d', ms, seq)
end

local function isAfter(a, b)
  if a == b then return false end
  local aMs, aSeq = split(a)
  local bMs, bSeq = split(b)
  return aMs > bMs or (aMs == bMs and aSeq > bSeq)
end

local function latest(a, b)
  if isAfter(a, b) then return a end
  return b
end

-- The clock of Redis, one for all hubs, unless a test brings its own time.
local function clock(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The clock for a step that assigns positions. An event at a position that the ids of the log cannot name would have no id, and
-- neither would any event after it.
local function positionClock(given, lastMs)
  local now = clock(given)
  if hybrid and (now >= maxMs or lastMs > maxMs) then
    local function yearOf(ms) return whole(1970 + math.floor(ms / 31556952000)) end
    error({ err = 'CLOCK the clock of Redis ' .. (now >= maxMs and 'is in ' .. yearOf(now) or 'was in ' .. yearOf(lastMs))
      .. ', and the ids of this log end in ' .. yearOf(maxMs) })
  end
  return now
end

-- The next position of an open log. The log keeps its last position as numbers, and makes the text of a millisecond once for all
-- positions in it.
local function advance(log, now)
  local ms, seq = log.ms, log.seq
  if not hybrid then
    seq = seq + 1
  else
    if now < minMs then now = minMs end
    if now > ms then
      ms, seq = now, 0
    elseif seq < maxSeq then
      seq = seq + 1
    else
      ms, seq = ms + 1, 0
    end
  end
  if ms ~= log.ms or not log.msText then log.msText = whole(ms) .. '-' end
  log.ms, log.seq = ms, seq
  return log.msText .. whole(seq)
end

-- Sets the range of this log's positions. A switch of the ids may change the range, so the stored one counts, not that of the
-- hub.
local function keepRange(most, least, last)
  maxSeq, minMs, maxMs = tonumber(most), tonumber(least), tonumber(last) or maxMs
end

local function streamOf(channel) return keyPrefix .. 'c:' .. channel end
local function retainedOf(channel) return keyPrefix .. 'r:' .. channel end

-- The log's own state, or nil where there is no log.
local function loadLog()
  local found = redis.call('HMGET', logKey, 'run', 'last', 'epoch', 'mean', 'forgotten', 'tidied', 'raised', 'maxSeq', 'minMs',
    'maxMs', 'marks', 'marked')
  if not found[1] then return nil end
  keepRange(found[8], found[9], found[10])
  local ms, seq = split(found[2])
  return {
    run = found[1], last = found[2], ms = ms, seq = seq, epoch = found[3], mean = tonumber(found[4]), forgotten = found[5],
    tidied = tonumber(found[6]), raised = found[7], marks = found[11], marked = found[12], entries = 0, bytes = 0,
  }
end

-- The log's own state when the caller may use it, or nil and the reason why the caller has to look at the log again.
local function openLog(seen)
  local log = loadLog()
  if not log then return nil, { '!empty' } end
  if log.run ~= run then return nil, { '!run' } end
  -- The caller has seen a position that this log does not reach: the log was rolled back in the same process.
  if seen ~= '' and isAfter(seen, log.last) then return nil, { '!behind' } end
  return log
end

-- A mark is a position before which a rollback took events. No event has it, and no reader crosses it unannounced. The log's own
-- state lists the marks, oldest first; a late mark has the position of the mark before its loss behind it ('<'). A sorted set has
-- each mark with each of its channels, or with a star for all channels.
local function marksOf(log)
  if not log.positions then
    log.positions, log.lostBefore = {}, {}
    for position, lostBefore in string.gmatch(log.marks or '', '([%d%-]+)<?([%d%-]*)') do
      log.positions[#log.positions + 1] = position
      log.lostBefore[position] = lostBefore
    end
  end
  return log.positions
end

local function isMark(log, position)
  if not log.marks then return false end
  marksOf(log)
  return log.lostBefore[position] ~= nil
end

-- A mark as it is listed.
local function markText(log, position)
  if position == '' then return '' end
  local lostBefore = log.lostBefore[position]
  return lostBefore ~= '' and position .. '<' .. lostBefore or position
end

local function marksChannel(position, channel)
  return redis.call('ZSCORE', marksKey, position .. ' ' .. channel) or redis.call('ZSCORE', marksKey, position .. ' *')
end

local function marksPrefix(position, prefix)
  if redis.call('ZSCORE', marksKey, position .. ' *') then return true end
  local from = '[' .. position .. ' ' .. prefix
  return redis.call('ZRANGEBYLEX', marksKey, from, from .. '\255', 'LIMIT', 0, 1)[1] ~= nil
end

-- The first mark of a channel, or of the channels with a prefix, after a position and not past another. '' without one.
local function nextMark(log, after, through, marks, name)
  for _, position in ipairs(marksOf(log)) do
    if isAfter(position, through) then return '' end
    if isAfter(position, after) and marks(position, name) then return position end
  end
  return ''
end

-- Six numbers, and four texts that end with a zero byte. cmsgpack takes twice as long, and every event pays for that.
local channelLayout = '<ddddddssss'

local function unpackChannel(packed)
  local total, base, count, oldestAt, emptySince, retained, newest, trimmed, invalidated, ended, behind =
    struct.unpack(channelLayout, packed)
  local counted
  if behind <= #packed then counted = struct.unpack('<d', packed, behind) end
  return {
    newest = newest, trimmed = trimmed, invalidated = invalidated, total = total, base = base, count = count, oldestAt = oldestAt,
    emptySince = emptySince, retained = retained, ended = ended, counted = counted,
  }
end

-- The age of a position as a number: an older position has a smaller one.
local function ageOf(position)
  local ms, seq = split(position)
  if hybrid then return ms end
  return seq
end

-- In a log with a budget, a channel that holds events stands in the order of age, at or before its oldest event. The log counts
-- the bytes of these channels. The packed state ends with the number of bytes that are counted. A call changes the sum once.
local heldChange = 0
local function packChannel(channel, it)
  local packed = struct.pack(channelLayout, it.total, it.base, it.count, it.oldestAt, it.emptySince, it.retained,
    it.newest, it.trimmed, it.invalidated, it.ended)
  if not (maxHeld or it.counted) then return packed end
  local held = it.count > 0 and it.total - it.base or 0
  heldChange = heldChange + held - (it.counted or 0)
  if it.count == 0 then
    if it.counted then redis.call('ZREM', agesKey, channel) end
    it.counted = nil
    return packed
  end
  if not it.counted then redis.call('ZADD', agesKey, ageOf(it.first or it.trimmed), channel) end
  it.counted = held
  return packed .. struct.pack('<d', held)
end

local function unknownChannel(log)
  -- A channel that comes back after it was forgotten must not look as if it had never lost anything.
  return {
    newest = log.marked or '0-0', trimmed = log.forgotten, invalidated = '0-0', total = 0, base = 0, count = 0, oldestAt = 0,
    emptySince = 0, retained = 0, ended = '-', isNew = true,
  }
end

-- When no hub knows which events a rollback took, every channel counts as one that has lost some. Earlier versions trimmed all
-- channels for that (raised), instead of marking them.
local function knownChannel(log, packed)
  local it = unpackChannel(packed)
  if log.marked then it.newest = latest(it.newest, log.marked) end
  if log.raised and isAfter(log.raised, it.trimmed) then
    it.trimmed, it.newest = log.raised, latest(it.newest, log.raised)
  end
  return it
end

local function openChannel(log, channel)
  local packed = redis.call('HGET', channelsKey, channel)
  if packed then return knownChannel(log, packed) end
  return unknownChannel(log)
end

local function enroll(channel, it)
  redis.call('ZADD', namesKey, 0, channel)
  it.isNew = nil
end

local function saveChannel(channel, it)
  if it.isNew then enroll(channel, it) end
  redis.call('HSET', channelsKey, channel, packChannel(channel, it))
  it.isChanged = nil
end

-- The words before the first line break of an entry.
local function headerOf(id, value)
  local fedAfter, previous, late, total = string.match(value, '^(%S+) (%S+) (%S+) (%d+)\n')
  local at
  if hybrid then
    at = split(id) - tonumber(late)
  else
    at = tonumber(late)
  end
  return { fedAfter = fedAfter, previous = previous, at = at, total = tonumber(total) }
end

-- Assigns the next position to an entry, and writes the entry to the feed. Every entry names the entry before it in the feed
-- and in its channel, so a missing entry shows. It also names how many bytes came before it in its channel, so the rest can be
-- counted.
local function feed(log, it, now, body)
  local id = advance(log, now)
  local late = now
  if hybrid then late = log.ms - now end
  local value = log.last .. ' ' .. it.newest .. format(' %d %d\n', late, it.total) .. body
  redis.call('XADD', feedKey, id, 'e', value)
  log.last = id
  log.entries = log.entries + 1
  log.bytes = log.bytes + #value
  return id, value
end

-- The window of a channel: that of its own name, else that of the narrowest pattern over it, else that of the log.
local function windowFor(channel)
  if not ownWindows then return window end
  if ownWindows[channel] then return ownWindows[channel] end
  local found = ownWindows['*'] or window
  local slash = string.find(channel, '/', 1, true)
  while slash do
    found = ownWindows[string.sub(channel, 1, slash) .. '*'] or found
    slash = string.find(channel, '/', slash + 1, true)
  end
  return found
end

local function isOverWindow(own, it, now)
  return it.count > 0 and (it.count > own.maxEvents + own.slack or it.total - it.base > own.maxBytes
    or it.oldestAt < now - own.maxAgeMs)
end

-- Trims a channel's oldest events until it is within its window. The clock may have been ahead when an event came. The age of
-- such an event counts from when it is found to be the oldest. Otherwise it, and all behind it, would stay until then.
local function trim(channel, it, now)
  local own = windowFor(channel)
  if it.count > 0 and it.oldestAt > now then it.oldestAt, it.isChanged = now, true end
  if it.count == 0 and it.emptySince > now then it.emptySince, it.isChanged = now, true end
  if not isOverWindow(own, it, now) then return end
  local stream, gone = streamOf(channel), 0
  if it.count > own.maxEvents + own.slack then gone = redis.call('XTRIM', stream, 'MAXLEN', '=', own.maxEvents) end
  -- A position is never before its time, so events with these positions are too old for certain. The loop below finds old events
  -- whose positions are ahead of their time.
  if hybrid and it.oldestAt < now - own.maxAgeMs then
    gone = gone + redis.call('XTRIM', stream, 'MINID', '=', text(now - own.maxAgeMs, 0))
  end
  local aheadSince = gone > 0 and now or it.oldestAt
  it.isChanged = true
  while true do
    local oldest = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
    if not oldest then
      it.trimmed = latest(it.trimmed, it.newest)
      it.base = it.total
      it.count = 0
      it.emptySince = now
      redis.call('DEL', stream)
      return
    end
    local header = headerOf(oldest[1], oldest[2][2])
    it.trimmed = latest(it.trimmed, header.previous)
    it.base = header.total
    it.oldestAt = header.at > now and aheadSince or header.at
    if header.at <= now then aheadSince = now end
    it.count = redis.call('XLEN', stream)
    if not isOverWindow(own, it, now) then return end
    redis.call('XDEL', stream, oldest[1])
  end
end

-- Trims the feed, which serves tails and patterns, by age and by bytes. Its length and the mean size of an entry tell its
-- bytes. It does so once a second, and when many bytes have come. It trims whole nodes of the stream, because that costs
-- little.
local function tidyFeed(log, now)
  local isDue = now < log.tidied or now - log.tidied >= 1000 or log.bytes > feedBytes / 64
  local length = redis.call('XLEN', feedKey)
  if not isDue and length * log.mean <= feedBytes * 1.05 then return end
  if hybrid then
    redis.call('XTRIM', feedKey, 'MINID', '~', text(math.max(0, now - feedAgeMs), 0), 'LIMIT', 0)
  end
  redis.call('XTRIM', feedKey, 'MAXLEN', '~', math.floor(feedBytes / log.mean), 'LIMIT', 0)
  redis.call('HSET', logKey, 'tidied', now)
end

-- Saves a log that has new entries.
local function saveLog(log, now)
  -- The mean of some thousand entries.
  local weight = math.min(1, log.entries / 4096)
  log.mean = log.mean + (log.bytes / log.entries - log.mean) * weight
  redis.call('HSET', logKey, 'last', log.last, 'mean', log.mean)
  tidyFeed(log, now)
end
