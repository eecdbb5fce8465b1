-- Runs one step.
-- ARGV: the step, the newest position that the hub has seen ('' for none), the time ('' for the clock of Redis), and what the
-- step takes.
local step = ARGV[1]
local answer
if bare[step] then
  answer = bare[step]()
else
  local log, why = openLog(ARGV[2])
  if not log then return why end
  if steps[step] then
    answer = steps[step](log, clock(ARGV[3]))
  else
    local now = positionClock(ARGV[3], log.ms)
    answer = dated[step](log, now)
    if log.entries > 0 then saveLog(log, now) end
  end
end
if heldChange ~= 0 then redis.call('HINCRBY', logKey, 'held', whole(heldChange)) end
return answer
