-- The upkeep of the log: its creation, its branches, what hubs leave for each other, and the sweep of channels that nobody
-- uses.

-- Everything that a hub has to know before it may use a connection, as names and values. INFO costs as much as an append, so
-- appends and reads do not call it.
bare.hello = function()
  local info = redis.call('INFO', 'server', 'memory', 'persistence', 'replication')
  local function of(name) return string.match(info, '\n' .. name .. ':([^\r\n]*)') or '' end
  local found = redis.call('HMGET', logKey, 'run', 'lineage', 'last', 'epoch', 'version', 'ids', 'left')
  local top = ''
  if redis.call('EXISTS', feedKey) == 1 then
    local stream = redis.call('XINFO', 'STREAM', feedKey)
    for index = 1, #stream, 2 do
      if stream[index] == 'last-generated-id' then top = stream[index + 1] end
    end
  end
  local known = redis.pcall('COMMAND', 'INFO', 'WAITAOF')
  return {
    'run', of('run_id'), 'lineage', of('master_replid'), 'policy', of('maxmemory_policy'), 'role', of('role'),
    'aof', of('aof_enabled'), 'waitAof', not known.err and known[1] and '1' or '0', 'replicas', of('connected_slaves'),
    'logRun', found[1] or '', 'logLineage', found[2] or '', 'last', found[3] or '', 'epoch', found[4] or '',
    'version', found[5] or '', 'ids', found[6] or '', 'left', found[7] or '', 'top', top,
  }
end

-- Like head, for a tail that asks every few seconds. A server may have copied its data from another server in the meantime. It
-- is the same process then, but holds the data of the other server.
steps.look = function(log)
  local info = redis.call('INFO', 'replication')
  if string.match(info, '\nmaster_replid:([^\r\n]*)') ~= lineage then return { '!run' } end
  return steps.head(log)
end

local function branches()
  return redis.call('LRANGE', branchesKey, 0, -1)
end

-- What a hub has to know before it works with positions: the formats of the ids, and the branches, one on each line.
local function history()
  local lines = branches()
  if #lines == 0 then return { '!nameless' } end
  table.insert(lines, 1, redis.call('HGET', logKey, 'ids') or '')
  return lines
end

bare.history = history

-- The first position of a new branch. It has to be after every position that any hub has seen, and the caller knows only its
-- own. Positions are not ahead of the clock, so the next millisecond will do. The clock of another machine may be behind the
-- positions, and a counter has no clock. Then the branch begins so far ahead that no other hub can have come there unheard.
local function beginning(floor, now)
  local ms, seq = split(floor)
  if not hybrid then return text(0, math.min(seq + 100000, maxSeq)) end
  now = math.max(now, minMs)
  if now > ms then return text(now + 1, 0) end
  return text(ms + 10000, 0)
end

-- Makes a log when there is none. What is left of an earlier log, whose state is gone, belongs to no branch, so this step
-- removes it.
-- ARGV: epoch, ids, floor, number of its first branch, maxSeq, minMs, maxMs
bare.create = function()
  if redis.call('EXISTS', logKey) == 1 then return history() end
  keepRange(ARGV[8], ARGV[9], ARGV[10])
  local now, floor = positionClock(ARGV[3], 0), ARGV[6]
  for _, name in ipairs(redis.call('ZRANGE', namesKey, 0, -1)) do redis.call('UNLINK', streamOf(name), retainedOf(name)) end
  redis.call('UNLINK', marksKey, feedKey, channelsKey, namesKey, keyedKey, agesKey, onceKey, onceOrderKey, onceCountsKey,
    branchesKey)
  local first = '0-0'
  if hybrid or floor ~= '' then first = beginning(floor ~= '' and floor or '0-0', now) end
  redis.call('HSET', logKey, 'version', formatVersion, 'ids', ARGV[5], 'run', run, 'lineage', lineage, 'last', first,
    'epoch', ARGV[4], 'mean', 300, 'forgotten', '0-0', 'tidied', 0, 'held', 0,
    'maxSeq', ARGV[8], 'minMs', ARGV[9], 'maxMs', ARGV[10])
  -- Makes an empty stream that knows its newest position. So a feed without entries differs from a missing feed.
  redis.call('XGROUP', 'CREATE', feedKey, 'none', '$', 'MKSTREAM')
  redis.call('XGROUP', 'DESTROY', feedKey, 'none')
  if first ~= '0-0' then redis.call('XSETID', feedKey, first) end
  redis.call('RPUSH', branchesKey, ARGV[4] .. ' ' .. ARGV[7] .. ' ' .. first .. ' -')
  return history()
end

-- Marks a channel, or all channels ('*'), at these positions: readers that come to one have lost something. The last position is
-- the newest of the log, and the channel's next event follows it.
local function markChannel(log, channel, positions, now)
  local newest = positions[#positions]
  for _, position in ipairs(positions) do redis.call('ZADD', marksKey, 0, position .. ' ' .. channel) end
  if channel == '*' then
    log.marked = newest
    redis.call('HSET', logKey, 'marked', newest)
    return
  end
  local it = openChannel(log, channel)
  it.newest = newest
  if it.count == 0 then it.emptySince = now end
  saveChannel(channel, it)
end

-- Adds marks to the list of the log. Forgets marks from before every window, and the oldest of too many. Readers from before such
-- a mark find it by the links of the events behind it. A pattern whose channels have no such event is told by what the log has
-- forgotten.
local function listMarks(log, positions, now)
  local known, longest = {}, window.maxAgeMs
  for _, own in pairs(ownWindows or {}) do longest = math.max(longest, own.maxAgeMs) end
  for _, position in ipairs(marksOf(log)) do known[position] = true end
  for _, position in ipairs(positions) do
    known[position] = true
    log.lostBefore[position] = log.lostBefore[position] or ''
  end
  if #positions > 1 then log.lostBefore[positions[2]] = positions[1] end
  local all = {}
  for position in pairs(known) do all[#all + 1] = position end
  table.sort(all, function(a, b) return isAfter(b, a) end)
  while #all > mostMarks or (hybrid and #all > #positions and split(all[1]) < now - longest) do
    local mark = table.remove(all, 1)
    if marksChannel(mark, '*') then log.forgotten = latest(log.forgotten, mark) end
    redis.call('ZREMRANGEBYLEX', marksKey, '[' .. mark .. ' ', '[' .. mark .. ' \255')
  end
  for index, position in ipairs(all) do all[index] = markText(log, position) end
  redis.call('HSET', logKey, 'marks', table.concat(all, ' '), 'version', markedVersion, 'forgotten', log.forgotten)
end

-- Whether a loss of this channel from before a position is on record. A mark behind the position is of a later loss, and readers
-- come to it too late.
local function isOnRecord(log, channel, since)
  if isMark(log, since) and marksChannel(since, channel) then return true end
  if channel == '*' then return log.raised and not isAfter(since, log.raised) end
  return not isAfter(since, openChannel(log, channel).trimmed)
end

-- Whether a position can be a mark: no event has it, and the ids of the log can name it.
local function isBetweenEntries(position)
  local _, seq = split(position)
  local entry = redis.call('XRANGE', feedKey, position, position)[1]
  return seq <= maxSeq and (not entry or string.find(entry[2][2], '\nb', 1, true) ~= nil)
end

-- Notes in the line of a branch how far past its fork the loss is on record.
local function setReported(epoch, through)
  for index, line in ipairs(branches()) do
    local found, rest, reported = string.match(line, '^(%S+) (%S+ %S+ %S+) ?(%S*)$')
    if found == epoch and (reported == '' or isAfter(through, reported)) then
      redis.call('LSET', branchesKey, index - 1, found .. ' ' .. rest .. ' ' .. through)
    end
  end
end

-- Replaces the list of branches, unless it has changed since the caller read it.
-- ARGV: digest of the list that the caller has merged, branches...
bare.merge = function()
  if redis.sha1hex(table.concat(branches(), '\n')) == ARGV[4] then
    redis.call('DEL', branchesKey)
    redis.call('RPUSH', branchesKey, unpack(ARGV, 5))
  end
  return history()
end

-- Opens a branch that goes on from the stored events, by an entry of the feed.
local function layBranch(fork, first, now, epoch, step, lost)
  local value = fork .. ' 0-0 ' .. (hybrid and split(first) - now or now) .. ' 0\nb\n\n\n' .. table.concat(lost, '\n')
  redis.call('XADD', feedKey, first, 'e', value)
  local before = string.match(redis.call('LINDEX', branchesKey, -1), '^%S+ (%d+)')
  redis.call('RPUSH', branchesKey, epoch .. ' ' .. whole(before + step) .. ' ' .. first .. ' ' .. fork)
  redis.call('HSET', logKey, 'run', run, 'lineage', lineage, 'last', first, 'epoch', epoch)
end

-- Opens a branch, unless another hub has opened one since the caller looked. A caller that has seen events which are now lost
-- says how far it had seen, which branch lost them ('' for the branch that opens now), where the log goes on behind them ('' for
-- the same), and which channels had them ('*' for all). When other hubs have reported all these channels, no branch is needed.
--
-- A report that comes after the branch that lost the events makes two marks. One stands where the log goes on, for readers from
-- before. The other is the branch that opens now, for readers that have passed the first before it was there.
--
-- Without the list of branches, it is not known which ids are good. One more branch gives ids to the events that there are, by an
-- epoch that no cursor has.
-- ARGV: epoch that the caller knows, new epoch, step of its number, floor, epoch for events without a branch or '', seen through,
-- epoch of the branch that lost the events, where the log goes on, channels...
bare.branch = function()
  local log = loadLog()
  if not log then return { '!empty' } end
  if log.epoch ~= ARGV[4] then return history() end
  local isNameless = redis.call('EXISTS', branchesKey) == 0
  if isNameless and ARGV[8] == '' then return history() end
  local now, fork, floor = positionClock(ARGV[3], log.ms), log.last, ARGV[7]
  if isNameless then
    redis.call('RPUSH', branchesKey, ARGV[8] .. ' ' .. whole(ARGV[6] - 1) .. ' ' .. text(hybrid and minMs or 0, 0) .. ' -')
  end
  local through, lostBy, since, lost = ARGV[9] or '', ARGV[10] or '', ARGV[11] or '', {}
  local first = beginning(floor ~= '' and latest(fork, floor) or fork, now)
  local lostAt = '0-0'
  for _, line in ipairs(branches()) do
    local epoch, start = string.match(line, '^(%S+) %S+ (%S+)')
    if epoch == lostBy then lostAt = start end
  end
  for index = 12, #ARGV do
    if lostBy == '' or not isOnRecord(log, ARGV[index], lostAt) then lost[#lost + 1] = ARGV[index] end
  end
  if lostBy ~= '' and #lost == 0 then
    if through ~= '' then setReported(lostBy, through) end
    return history()
  end
  layBranch(fork, first, now, ARGV[5], ARGV[6], lost)
  if through ~= '' then setReported(lostBy ~= '' and lostBy or ARGV[5], through) end
  if #lost > 0 then
    local positions = { first }
    if since ~= '' and isBetweenEntries(since) then table.insert(positions, 1, since) end
    for _, channel in ipairs(lost) do markChannel(log, channel, positions, now) end
    listMarks(log, positions, now)
  end
  return history()
end

-- Switches the format of the ids from the first position of a new branch on, unless another hub has opened a branch since the
-- caller looked. Every answer names the newest branch, so no hub works with a position of that branch before it has asked for
-- its format.
-- ARGV: epoch that the caller knows, new epoch, step of its number, the codec, its version with a space before it or '', maxSeq,
-- minMs, maxMs
steps.ids = function(log)
  if log.epoch ~= ARGV[4] or redis.call('EXISTS', branchesKey) == 0 then return history() end
  keepRange(ARGV[9], ARGV[10], ARGV[11])
  local now = positionClock(ARGV[3], log.ms)
  local first = beginning(log.last, now)
  local ids = redis.call('HGET', logKey, 'ids') .. '\n' .. ARGV[7] .. ' ' .. first .. ARGV[8]
  redis.call('HSET', logKey, 'ids', ids, 'maxSeq', ARGV[9], 'minMs', ARGV[10], 'maxMs', ARGV[11])
  layBranch(log.last, first, now, ARGV[5], ARGV[6], {})
  return history()
end

-- Notes the name that a hub gives to the log when it stops.
-- ARGV: name
steps.leave = function(log)
  redis.call('HSET', logKey, 'left', ARGV[4])
  return { log.last, log.epoch }
end

-- Writes a field that nobody reads.
dated.probe = function(_, now)
  redis.call('HSET', logKey, 'probed', now)
  return { 'probed' }
end

-- The notes that the hubs of this log leave for each other. They have nothing to do with events.
-- ARGV: note, for how long in ms
bare.meet = function()
  local now, answer = clock(ARGV[3]), {}
  redis.call('HSET', notesKey, writerKey, whole(now + ARGV[5]) .. ' ' .. ARGV[4])
  redis.call('PEXPIRE', notesKey, ARGV[5])
  local notes = redis.call('HGETALL', notesKey)
  for index = 1, #notes, 2 do
    local till, note = string.match(notes[index + 1], '^(%d+) (.*)$')
    if tonumber(till) < now then
      redis.call('HDEL', notesKey, notes[index])
    else
      answer[#answer + 1] = note
    end
  end
  return answer
end

-- Orders of one hub to all hubs, for example to reject revoked rights. Redis keeps them for hubs that start later.
-- ARGV: after, for how long the hub counts in ms, order or '', until or '', the order to count for or ''
bare.orders = function()
  local now, after, posted = clock(ARGV[3]), ARGV[4], ''
  if ARGV[6] ~= '' then
    if redis.call('XLEN', ordersKey) >= mostOrders then
      for _, entry in ipairs(redis.call('XRANGE', ordersKey, '-', '+')) do
        local till = tonumber(entry[2][2])
        if till and till <= now then redis.call('XDEL', ordersKey, entry[1]) end
      end
      if redis.call('XLEN', ordersKey) >= mostOrders then return { 'full' } end
    end
    posted = redis.call('XADD', ordersKey, '*', 'until', ARGV[7], 'order', ARGV[6])
  end
  redis.call('HSET', heardKey, writerKey, whole(now + ARGV[5]) .. ' ' .. after)
  redis.call('PEXPIRE', heardKey, ARGV[5])
  local nodes, confirmed = 0, 0
  local heard = redis.call('HGETALL', heardKey)
  for index = 1, #heard, 2 do
    local till, reached = string.match(heard[index + 1], '^(%d+) (.*)$')
    if tonumber(till) < now then
      redis.call('HDEL', heardKey, heard[index])
    else
      nodes = nodes + 1
      if ARGV[8] == '' or (reached ~= '' and not isAfter(ARGV[8], reached)) then confirmed = confirmed + 1 end
    end
  end
  local answer = { posted, whole(nodes), whole(confirmed) }
  for _, entry in ipairs(redis.call('XRANGE', ordersKey, after == '' and '-' or '(' .. after, '+', 'COUNT', 500)) do
    answer[#answer + 1] = entry[1]
    answer[#answer + 1] = entry[2][4]
  end
  return answer
end

-- One hub at a time goes round the channels. The sweep trims and in the end forgets channels to which nobody publishes, and
-- counts channels that the budget does not count yet.
-- ARGV: cursor, lease in ms
steps.sweep = function(log, now)
  local holder = redis.call('GET', sweepKey)
  if holder and holder ~= writerKey then return { 'leased' } end
  redis.call('SET', sweepKey, writerKey, 'PX', ARGV[5])
  local page = redis.call('HSCAN', channelsKey, ARGV[4], 'COUNT', 200)
  local forgotten = log.forgotten
  for index = 1, #page[2], 2 do
    local channel, it = page[2][index], unpackChannel(page[2][index + 1])
    trim(channel, it, now)
    if it.count == 0 and it.retained == 0 and now - it.emptySince > forgetAfterMs
      and redis.call('EXISTS', retainedOf(channel)) == 0 then
      forgotten = latest(forgotten, latest(it.trimmed, it.newest))
      -- The end counts, too: a reader from before it has to be notified, and the log forgets the end with the channel.
      if it.ended ~= '-' then forgotten = latest(forgotten, string.match(it.ended, '^[^,]+')) end
      redis.call('HDEL', channelsKey, channel)
      redis.call('ZREM', namesKey, channel)
    elseif it.isChanged or (maxHeld and it.count > 0 and not it.counted) then
      redis.call('HSET', channelsKey, channel, packChannel(channel, it))
    end
  end
  redis.call('HSET', logKey, 'forgotten', forgotten)
  local isOver = shrink(log, now, 1000)
  tidyFeed(log, now)
  return { 'swept', page[1], isOver and '1' or '0' }
end

-- What the hubs of the log agree on: short texts, which Redis expires itself, and the time.
-- ARGV: name, text, for how long in ms or ''
steps.put = function()
  local key = keyPrefix .. 'v:' .. ARGV[4]
  local standing = redis.call('GET', key)
  if standing then return { 'standing', standing } end
  if ARGV[6] == '' then
    redis.call('SET', key, ARGV[5])
  else
    redis.call('SET', key, ARGV[5], 'PX', ARGV[6])
  end
  return { 'put', ARGV[5] }
end

bare.clock = function()
  return { whole(clock(ARGV[3])) }
end
