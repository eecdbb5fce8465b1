-- Runs the step that the hub asks for.
local answer = steps[ARGV[1]]()
if heldChange ~= 0 then redis.call('HINCRBY', logKey, 'held', whole(heldChange)) end
return answer
