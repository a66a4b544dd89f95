-- Puts tasks of a manager that died back to the head of their queue, those whose lease is still the one given.
--
-- KEYS[1] active   KEYS[2] lease   KEYS[3] pending   KEYS[4] channel on which a wake-up is announced
-- ARGV[1] what the key of a task's hash begins with
-- ARGV[2] now, Unix nanosecond
-- then two values a task: key, lease (empty for none)
-- Returns how many were put back. An active ID without a hash is forgotten.
local n = 0
for i = 3, #ARGV, 2 do
  local id, lease = ARGV[i], ARGV[i + 1]
  if (redis.call("ZSCORE", KEYS[2], id) or "") == lease and redis.call("LREM", KEYS[1], 1, id) == 1 then
    redis.call("ZREM", KEYS[2], id)
    local task = ARGV[1] .. id
    if redis.call("EXISTS", task) == 1 then
      redis.call("HDEL", task, "drover_holder")
      redis.call("HINCRBY", task, "drover_losses", 1)
      redis.call("HSET", task, "state", "pending", "pending_since", ARGV[2])
      redis.call("RPUSH", KEYS[3], id)
      n = n + 1
    end
  end
end
if n > 0 then
  redis.call("PUBLISH", KEYS[4], "")
end
return n
