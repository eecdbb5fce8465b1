-- Reads. Each answers with its events and with the state of the channel at that same moment.

-- The state of a channel after a trim.
local function current(log, channel, now)
  local it = openChannel(log, channel)
  if it.isNew then return it end
  trim(channel, it, now)
  if it.isChanged then saveChannel(channel, it) end
  return it
end

-- The events of a stream after a position. They are read in pieces, so that large events do not fill the memory before they are
-- counted.
local function events(stream, after, through, limit, bytes)
  local found, size, count, cut = {}, 0, 0, '0'
  local from = '(' .. after
  while true do
    local piece = redis.call('XRANGE', stream, from, through, 'COUNT', math.min(64, limit - count))
    for _, entry in ipairs(piece) do
      found[#found + 1] = entry[1]
      found[#found + 1] = entry[2][2]
      count = count + 1
      size = size + #entry[2][2]
      if count >= limit or size >= bytes then return found, '1' end
    end
    if #piece < 64 then return found, cut end
    from = '(' .. piece[#piece][1]
  end
end

-- ARGV: after, through, events, bytes, channels...
steps.read = function(log, now)
  local after, through = ARGV[4], ARGV[5]
  local limit, bytes = tonumber(ARGV[6]), tonumber(ARGV[7])
  local answer = {}
  for index = 8, #ARGV do
    local channel = ARGV[index]
    local it = current(log, channel, now)
    local found, cut, mark = {}, '0', nextMark(log, after, through, marksChannel, channel)
    if isAfter(it.newest, after) and not isAfter(it.trimmed, after) then
      found, cut = events(streamOf(channel), after, mark ~= '' and mark or through, limit, bytes)
    end
    answer[#answer + 1] = { it.newest, it.trimmed, it.invalidated, cut, found, markText(log, mark) }
  end
  return answer
end

-- Whether the entry of a branch names a channel with this prefix, and is no mark any more. It names the channels that lost
-- something, one on each line. Earlier versions trimmed these channels.
local function hasLost(log, id, value, prefix)
  if isMark(log, id) then return false end
  for name in string.gmatch(string.match(value, '\n\n\n(.*)$') or '', '[^\n]+') do
    if string.sub(name, 1, #prefix) == prefix then return true end
  end
  return false
end

-- The events of channels with a prefix, from the feed. The feed has every entry since its oldest, so the search looks only at
-- channels with new entries. Answers 'far' when the feed does not reach back to the cursor.
-- ARGV: after, through, events, bytes, prefix
steps.search = function(log, now)
  local after, through, prefix = ARGV[4], ARGV[5], ARGV[8]
  local limit, bytes = tonumber(ARGV[6]), tonumber(ARGV[7])
  local mark = nextMark(log, after, through, marksPrefix, prefix)
  if mark ~= '' then through = mark end
  local found, size, count, scanned = {}, 0, 0, 0
  local seen, trimmed, invalidated = {}, log.forgotten, '0-0'
  local from, reached, complete = after, nil, ''
  while complete == '' do
    local piece = redis.call('XRANGE', feedKey, '(' .. from, through, 'COUNT', 100)
    for _, entry in ipairs(piece) do
      local id, value = entry[1], entry[2][2]
      local fedAfter, kind, channel = string.match(value, '^(%S+) [^\n]*\n(%a)([^\n]*)\n')
      if reached and fedAfter ~= reached or not reached and isAfter(fedAfter, after) then return { 'far' } end
      reached = id
      from = id
      scanned = scanned + 1
      if kind == 'b' then
        if hasLost(log, id, value, prefix) then trimmed = latest(trimmed, id) end
      elseif string.sub(channel, 1, #prefix) == prefix and kind ~= 'l' then
        if not seen[channel] then
          local it = current(log, channel, now)
          seen[channel] = true
          trimmed = latest(trimmed, it.trimmed)
          if isAfter(it.trimmed, after) then invalidated = latest(invalidated, it.invalidated) end
        end
        if kind ~= 'i' and kind ~= 'z' then
          found[#found + 1] = id
          found[#found + 1] = value
          count = count + 1
          size = size + #value
        end
      end
      if count >= limit or size >= bytes or scanned >= searchAtMost then
        complete = id
        break
      end
    end
    if complete == '' and #piece < 100 then
      -- The feed has trimmed all that the log has in this range.
      if not reached and isAfter(log.last, after) and not isAfter(through, log.last) and isAfter(through, after) then
        return { 'far' }
      end
      complete = through
    end
  end
  return { 'found', trimmed, invalidated, complete, found, markText(log, mark) }
end

-- The kind of an entry, its channel, and its type.
local function bodyOf(value)
  return string.match(value, '\n(%a)([^\n]*)\n([^\n]*)\n')
end

-- The newest positions of a channel, newest first. Returns the position after which the list is complete, the position after
-- which the channel is whole, and the list of ids and types.
local function channelBack(log, channel, now, after, through, most)
  local it = current(log, channel, now)
  local floor = latest(after, it.trimmed)
  local found = {}
  if not isAfter(it.newest, floor) then return { floor, floor, found } end
  local entries = redis.call('XREVRANGE', streamOf(channel), through, '(' .. floor, 'COUNT', most + 1)
  for index, entry in ipairs(entries) do
    if index > most then return { entry[1], floor, found } end
    local _, _, kind = bodyOf(entry[2][2])
    found[#found + 1] = entry[1]
    found[#found + 1] = kind
  end
  return { floor, floor, found }
end

-- Like channelBack, for all channels with a prefix, by the feed. Returns nil when the feed does not reach back so far.
local function feedBack(log, prefix, now, after, through, most, atMost)
  local floor, found, scanned = latest(after, log.forgotten), {}, 0
  local seen, expected, from = {}, nil, through
  while true do
    local piece = redis.call('XREVRANGE', feedKey, from, '-', 'COUNT', 100)
    for _, entry in ipairs(piece) do
      local id, value = entry[1], entry[2][2]
      if not isAfter(id, floor) then return { floor, floor, found } end
      if expected and expected ~= id then return nil end
      if #found >= 2 * most or scanned >= atMost then return { id, floor, found } end
      scanned = scanned + 1
      expected = string.match(value, '^(%S+) ')
      from = '(' .. id
      local kind, channel, type = bodyOf(value)
      if kind == 'b' then
        if hasLost(log, id, value, prefix) then floor = latest(floor, id) end
      elseif string.sub(channel, 1, #prefix) == prefix and kind ~= 'l' then
        -- The walk meets the newest entry of a channel first, so the loss of the channel is known before its older entries come.
        local trimmed = seen[channel]
        if not trimmed then
          trimmed = current(log, channel, now).trimmed
          seen[channel] = trimmed
          floor = latest(floor, trimmed)
        end
        if kind ~= 'i' and kind ~= 'z' and isAfter(id, floor) then
          found[#found + 1] = id
          found[#found + 1] = type
        end
      end
    end
    if #piece < 100 then break end
  end
  -- The walk has come to the end of the feed. Unless the last entry was the first of the log, earlier entries are unknown here.
  if expected and isAfter(expected, floor) then return nil end
  if not expected and isAfter(through, floor) and isAfter(log.last, floor) then return nil end
  return { floor, floor, found }
end

-- ARGV: after, through, how many, names of channels, and prefixes with a star in front...
steps.back = function(log, now)
  local after, through, most = ARGV[4], ARGV[5], tonumber(ARGV[6])
  local answer = {}
  -- All names together must not take longer than one name alone.
  local atMost = math.max(10, math.floor(searchAtMost / (#ARGV - 6)))
  for index = 7, #ARGV do
    local name = ARGV[index]
    local page
    if string.sub(name, 1, 1) == '*' then
      page = feedBack(log, string.sub(name, 2), now, after, through, most, atMost)
    else
      page = channelBack(log, name, now, after, through, most)
    end
    if not page then return { 'far' } end
    answer[#answer + 1] = page
  end
  return answer
end

local function windowOf(log, channel, now)
  local it = current(log, channel, now)
  local oldest, newest, previous = '', '', it.newest
  if it.count > 0 then
    local first = redis.call('XRANGE', streamOf(channel), '-', '+', 'COUNT', 1)[1]
    if first then
      oldest, newest, previous = first[1], it.newest, headerOf(first[1], first[2][2]).previous
      -- The newest entry of the channel may be a mark, behind its newest event.
      if log.marks then newest = redis.call('XREVRANGE', streamOf(channel), '+', '-', 'COUNT', 1)[1][1] end
    end
  end
  -- Nothing was trimmed up to a mark: the reader of all events comes to it, and is notified there.
  if (isMark(log, previous) or previous == log.marked) and isAfter(previous, it.trimmed) then previous = '0-0' end
  local ended = ''
  if it.ended ~= '-' then ended = string.match(it.ended, '^[^,]+') end
  return { channel, tostring(it.count), tostring(it.total - it.base), it.trimmed, oldest, newest,
    ended, it.newest, it.invalidated, previous }
end

-- ARGV: channels...
steps.windows = function(log, now)
  local answer = { log.forgotten, '' }
  for index = 4, #ARGV do answer[#answer + 1] = windowOf(log, ARGV[index], now) end
  return answer
end

-- The windows of the next channels with a prefix, in the order of their names.
-- ARGV: prefix, name after which to go on, how many
steps.registry = function(log, now)
  local prefix, behind, most = ARGV[4], ARGV[5], tonumber(ARGV[6])
  local from = '[' .. prefix
  if behind ~= '' and behind >= prefix then from = '(' .. behind end
  local names = redis.call('ZRANGEBYLEX', namesKey, from, '[' .. prefix .. '\255', 'LIMIT', 0, most)
  local answer = { log.forgotten, names[most] or '' }
  for _, name in ipairs(names) do answer[#answer + 1] = windowOf(log, name, now) end
  return answer
end

-- The next channels with a prefix that have anything after a position, and what they have lost.
-- ARGV: prefix, name after which to go on, how many, after, through
steps.changed = function(log, now)
  local prefix, behind, most, after = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
  local from = '[' .. prefix
  if behind ~= '' then from = '(' .. behind end
  local names = redis.call('ZRANGEBYLEX', namesKey, from, '[' .. prefix .. '\255', 'LIMIT', 0, most)
  local changed, trimmed, invalidated = {}, log.forgotten, '0-0'
  local states = #names > 0 and redis.call('HMGET', channelsKey, unpack(names)) or {}
  for index, name in ipairs(names) do
    local it = states[index] and knownChannel(log, states[index]) or unknownChannel(log)
    if isAfter(it.newest, after) then
      changed[#changed + 1] = name
      if isOverWindow(windowFor(name), it, now) then it = current(log, name, now) end
      trimmed = latest(trimmed, it.trimmed)
      if isAfter(it.trimmed, after) then invalidated = latest(invalidated, it.invalidated) end
    end
  end
  local mark = nextMark(log, after, ARGV[8], marksPrefix, prefix)
  return { names[most] or '', trimmed, invalidated, changed, markText(log, mark) }
end

-- The retained events. Answers 'unknown' when there are too many: a reader would take an incomplete list for the whole state.
-- ARGV: names of channels, and prefixes with a star in front...
steps.retained = function()
  local found, size = {}, 0
  for index = 4, #ARGV do
    local name = ARGV[index]
    local channels = { name }
    if string.sub(name, 1, 1) == '*' then
      local prefix = string.sub(name, 2)
      channels = redis.call('ZRANGEBYLEX', keyedKey, '[' .. prefix, '[' .. prefix .. '\255', 'LIMIT', 0, retainKeys + 1)
    end
    for _, channel in ipairs(channels) do
      for _, held in ipairs(redis.call('HVALS', retainedOf(channel))) do
        local cost, id, value = string.match(held, '^(%d+) (%S+) (.*)$')
        found[#found + 1] = id
        found[#found + 1] = value
        size = size + tonumber(cost)
        if #found > 2 * retainKeys or size > retainBytes then return { 'unknown' } end
      end
    end
  end
  return { 'found', found }
end

steps.head = function(log)
  return { log.last, log.epoch }
end
