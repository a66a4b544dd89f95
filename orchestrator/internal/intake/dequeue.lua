-- Takes up to n tasks from the head of a queue, as asynq's dequeueCmd does for one.
--
-- KEYS[1] pending   KEYS[2] paused   KEYS[3] active   KEYS[4] lease
-- ARGV[1] Unix second at which the lease ends
-- ARGV[2] what the key of a task's hash begins with
-- ARGV[3] n
-- ARGV[4] token of this call: only who knows it may settle these tasks
-- ARGV[5] "1" when a call with this token was made before and its answer was lost: what it took is returned first
-- Returns a flat list, ten values a task: key, msg, pending_since, drover_failures, drover_kills,
-- drover_interruptions, drover_losses, drover_order, drover_suspect, drover_history; empty where a field is not there.
-- Nothing new while the queue is paused. An ID whose hash is gone, or is none, is forgotten.
local out = {}
local lease = {}

local function give(id)
  local v = redis.pcall("HMGET", ARGV[2] .. id, "msg", "pending_since", "drover_failures", "drover_kills",
    "drover_interruptions", "drover_losses", "drover_order", "drover_suspect", "drover_history")
  if v.err and not string.find(v.err, "WRONGTYPE", 1, true) then
    error(v.err) -- such as that the key is on its way to another node of a Cluster: the task stays, and is rescued
  end
  if not v[1] then -- also when the key is no hash
    return false
  end
  lease[#lease + 1] = ARGV[1]
  lease[#lease + 1] = id
  out[#out + 1] = id
  for i = 1, 9 do
    out[#out + 1] = v[i] or ""
  end
  return true
end

if ARGV[5] == "1" then
  local active = redis.call("LRANGE", KEYS[3], 0, -1)
  for i = #active, 1, -1 do
    if redis.pcall("HGET", ARGV[2] .. active[i], "drover_holder") == ARGV[4] then
      give(active[i])
    end
  end
end
if redis.call("EXISTS", KEYS[2]) == 0 then
  for _ = 1, tonumber(ARGV[3]) do
    local id = redis.call("RPOPLPUSH", KEYS[1], KEYS[3])
    if not id then
      break
    end
    if give(id) then
      local task = ARGV[2] .. id
      redis.call("HSET", task, "state", "active", "drover_holder", ARGV[4])
      redis.call("HDEL", task, "pending_since", "drover_order")
    else
      redis.call("LREM", KEYS[3], 1, id)
    end
  end
end
if #lease > 0 then
  redis.call("ZADD", KEYS[4], unpack(lease))
end
return out
