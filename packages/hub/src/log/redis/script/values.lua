-- What the hubs of the log agree on: short texts, which Redis expires itself, and the time.

-- ARGV: put, seen, now, name, text, for how long in ms or ''
steps.put = function()
  local log, why = openLog(ARGV[2])
  if not log then return why end
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

-- ARGV: clock, seen, now
steps.clock = function()
  return { whole(clock(ARGV[3])) }
end
