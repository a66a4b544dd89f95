-- Takes tasks that no manager has out of their queue and leaves a terminal record of each; all or nothing for each.
--
-- KEYS[1] pending   KEYS[2] scheduled   KEYS[3] retry   KEYS[4] archived
-- ARGV[1] what the key of a task's hash begins with
-- ARGV[2] what the key of a record begins with
-- ARGV[3] channel of events
-- ARGV[4] seconds that a record is kept
-- then for each task:
--   key
--   state     in asynq's words, as the caller saw it: "pending", "scheduled", "retry" or "archived"
--   sum       SHA-1 of the message that the caller saw, in hexadecimal
--   record    terminal record
--   event     encoded events
-- Returns a list with 1 for each task that was dropped and 0 for each that is not any more what the caller saw.
-- asynq's uniqueness lock goes if the task has it, as with asynq's own deletion.
local sets = {scheduled = KEYS[2], retry = KEYS[3], archived = KEYS[4]}
local results, events = {}, {}
for i = 5, #ARGV, 5 do
  local id, state = ARGV[i], ARGV[i + 1]
  local task = ARGV[1] .. id
  local now = redis.pcall("HMGET", task, "state", "msg", "unique_key")
  if now[1] ~= state or redis.sha1hex(now[2] or "") ~= ARGV[i + 2] then
    results[#results + 1] = 0
  else
    if state == "pending" then
      redis.call("LREM", KEYS[1], 0, id)
    else
      redis.call("ZREM", sets[state], id)
    end
    local lock = now[3]
    if lock and lock ~= "" and redis.call("GET", lock) == id then
      redis.call("DEL", lock)
    end
    redis.call("DEL", task)
    redis.call("SET", ARGV[2] .. id, ARGV[i + 3], "EX", ARGV[4])
    events[#events + 1] = ARGV[i + 4]
    results[#results + 1] = 1
  end
end
if #events > 0 then
  redis.call("PUBLISH", ARGV[3], table.concat(events))
end
return results
