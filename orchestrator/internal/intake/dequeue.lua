-- Takes up to n tasks from the head of a queue, as asynq's dequeueCmd does for one.
--
-- KEYS[1] pending   KEYS[2] paused   KEYS[3] active   KEYS[4] lease
-- ARGV[1] Unix second at which the lease ends
-- ARGV[2] what the key of a task's hash begins with
-- ARGV[3] n
-- ARGV[4] token of this call: only who knows it may settle these tasks
-- Returns a flat list, seven values a task: key, msg, pending_since, drover_failures, drover_kills,
-- drover_interruptions, drover_losses; empty where a field is not there.
-- Nothing while the queue is paused. An ID whose hash is gone is forgotten.
if redis.call("EXISTS", KEYS[2]) == 1 then
  return {}
end
local out = {}
for _ = 1, tonumber(ARGV[3]) do
  local id = redis.call("RPOPLPUSH", KEYS[1], KEYS[3])
  if not id then
    break
  end
  local key = ARGV[2] .. id
  local v = redis.call("HMGET", key, "msg", "pending_since", "drover_failures", "drover_kills", "drover_interruptions", "drover_losses")
  if v[1] then
    redis.call("HSET", key, "state", "active", "drover_holder", ARGV[4])
    redis.call("HDEL", key, "pending_since")
    redis.call("ZADD", KEYS[4], ARGV[1], id)
    out[#out + 1] = id
    for i = 1, 6 do
      out[#out + 1] = v[i] or ""
    end
  else
    redis.call("LREM", KEYS[3], 1, id)
  end
end
return out
