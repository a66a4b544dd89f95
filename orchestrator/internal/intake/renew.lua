-- Renews the leases of tasks that are held. A task is held by who knows the token of the call that took it.
--
-- KEYS[1] lease
-- ARGV[1] Unix second at which the leases end
-- ARGV[2] what the key of a task's hash begins with
-- then two values a task: key, token
-- Returns a list with 1 for each task that is still held and 0 for each that is not.
local results = {}
local lease = {}
for i = 3, #ARGV, 2 do
  local v = redis.call("HMGET", ARGV[2] .. ARGV[i], "state", "drover_holder")
  if v[1] == "active" and v[2] == ARGV[i + 1] then
    lease[#lease + 1] = ARGV[1]
    lease[#lease + 1] = ARGV[i]
    results[#results + 1] = 1
  else
    results[#results + 1] = 0
  end
end
if #lease > 0 then
  redis.call("ZADD", KEYS[1], unpack(lease))
end
return results
