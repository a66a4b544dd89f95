-- Reads what is known of a schedule, and keeps it from being forgotten. One that nothing is known of begins now.
--
-- KEYS[1] the schedule's hash
-- ARGV[1] seconds after which it is forgotten when no manager has looked at it
-- ARGV[2] the manager that begins with the schedule; empty when it goes on, and then nothing else is looked at
-- ARGV[3] the words that the due times are made from: are they others than those that are known, all up to now counts as decided, and
--         nothing waits; empty when the schedule is off in this manager, which is noted and changes nothing for others
-- Returns the time of Redis, Unix milliseconds; "1" when the schedule was off in this manager before; and then the fields of the hash
-- and their values in turn.
local t = redis.call("TIME")
local now = string.format("%d", t[1] * 1000 + math.floor(t[2] / 1000))
local was_off = ""
if redis.call("HEXISTS", KEYS[1], "decided") == 0 then
  redis.call("HSET", KEYS[1], "decided", now)
end
if ARGV[2] ~= "" and ARGV[3] == "" then
  redis.call("HSET", KEYS[1], "off:" .. ARGV[2], "1")
elseif ARGV[2] ~= "" then
  if redis.call("HDEL", KEYS[1], "off:" .. ARGV[2]) == 1 then
    was_off = "1"
  end
  local known = redis.call("HGET", KEYS[1], "words")
  if known and known ~= ARGV[3] then
    redis.call("HSET", KEYS[1], "decided", now)
    redis.call("HDEL", KEYS[1], "queued", "replace")
  end
  redis.call("HSET", KEYS[1], "words", ARGV[3])
end
redis.call("EXPIRE", KEYS[1], ARGV[1])
local answer = redis.call("HGETALL", KEYS[1])
table.insert(answer, 1, was_off)
table.insert(answer, 1, now)
return answer
