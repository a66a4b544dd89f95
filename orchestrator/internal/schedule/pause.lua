-- Pauses a schedule for all managers, or resumes it: then nothing waits, and it goes on with the next due time after now.
--
-- KEYS[1] the schedule's hash
-- ARGV[1] who pauses it; empty to resume it
-- Returns 1 when that changed something, 0 when it was so already.
local t = redis.call("TIME")
local now = string.format("%d", t[1] * 1000 + math.floor(t[2] / 1000))
local paused = redis.call("HEXISTS", KEYS[1], "paused")
if ARGV[1] ~= "" then
  if paused == 1 then
    return 0
  end
  redis.call("HSET", KEYS[1], "paused", now, "paused_by", ARGV[1])
  return 1
end
if paused == 0 then
  return 0
end
redis.call("HDEL", KEYS[1], "paused", "paused_by", "queued", "replace")
redis.call("HSET", KEYS[1], "decided", now)
return 1
