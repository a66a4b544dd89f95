-- Puts dead letters back at the tail of their queue with fresh counters, and failed tasks at its head; all or nothing for each.
--
-- KEYS[1] pending   KEYS[2] retry   KEYS[3] archived
-- ARGV[1] what the key of a task's hash begins with
-- ARGV[2] what the key of a record begins with
-- ARGV[3] channel of events
-- ARGV[4] wake channel
-- ARGV[5] now, Unix nanosecond
-- then for each task:
--   key
--   state     in asynq's words, as the caller saw it: "archived" or "retry"
--   sum       SHA-1 of the message that the caller saw, in hexadecimal
--   message   asynq message to have from now on; empty to leave it
--   suspect   "1" when it must run alone in a process
--   event     encoded events
--   mark      encoded history that says that the task was put back
-- Returns a list with 1 for each task that was put back and 0 for each that is not any more what the caller saw.
-- The history of a task stays, with the mark behind it: histories joined end to end are one. asynq's uniqueness lock of a dead letter is left alone, as asynq does.
local results, events = {}, {}
for i = 6, #ARGV, 7 do
  local id, state = ARGV[i], ARGV[i + 1]
  local task = ARGV[1] .. id
  local now = redis.pcall("HMGET", task, "state", "msg", "drover_history")
  if now[1] ~= state or redis.sha1hex(now[2] or "") ~= ARGV[i + 2] then
    results[#results + 1] = 0
  else
    if state == "archived" then
      redis.call("ZREM", KEYS[3], id)
      redis.call("HDEL", task, "drover_failures", "drover_kills", "drover_interruptions", "drover_losses", "drover_end",
        "drover_holder", "drover_suspect", "drover_order", "drover_progress")
      redis.call("DEL", ARGV[2] .. id)
      redis.call("LPUSH", KEYS[1], id)
    else
      redis.call("ZREM", KEYS[2], id)
      redis.call("HDEL", task, "drover_order")
      redis.call("RPUSH", KEYS[1], id)
    end
    redis.call("HSET", task, "state", "pending", "pending_since", ARGV[5], "drover_history", (now[3] or "") .. ARGV[i + 6])
    if ARGV[i + 3] ~= "" then
      redis.call("HSET", task, "msg", ARGV[i + 3])
    end
    if ARGV[i + 4] == "1" then
      redis.call("HSET", task, "drover_suspect", "1")
    end
    events[#events + 1] = ARGV[i + 5]
    results[#results + 1] = 1
  end
end
if #events > 0 then
  redis.call("PUBLISH", ARGV[3], table.concat(events))
  redis.call("PUBLISH", ARGV[4], "")
end
return results
