-- Puts tasks of a manager that died back to the head of their queue, those whose lease is still the one given.
--
-- KEYS[1] active   KEYS[2] lease   KEYS[3] pending   KEYS[4] channel on which a wake-up is announced
-- ARGV[1] what the key of a task's hash begins with
-- ARGV[2] now, Unix nanosecond
-- ARGV[3] what the loss adds to the history of the last runs, encoded
-- ARGV[4] a history longer than this, in bytes, gets nothing added
-- then two values a task: key, lease (empty for none)
-- Returns how many were put back. An active ID without a hash is forgotten.
--
-- The first write is one that a Redis which has no memory left refuses, as it refuses the renewal of leases: a lease that stands
-- still for that reason is nobody's death.
local n = 0
for i = 5, #ARGV, 2 do
  local id, lease = ARGV[i], ARGV[i + 1]
  local task = ARGV[1] .. id
  if (redis.call("ZSCORE", KEYS[2], id) or "") == lease and redis.call("LPOS", KEYS[1], id) then
    local known = redis.call("TYPE", task).ok == "hash"
    if known then
      redis.call("HINCRBY", task, "drover_losses", 1)
      local history = redis.call("HGET", task, "drover_history") or ""
      if #history <= tonumber(ARGV[4]) then
        redis.call("HSET", task, "drover_history", history .. ARGV[3])
      end
    end
    redis.call("LREM", KEYS[1], 1, id)
    redis.call("ZREM", KEYS[2], id)
    if known then
      redis.call("HDEL", task, "drover_holder")
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
