-- Counts the dead letters by the state in which they ended.
--
-- KEYS[1] archived
-- ARGV[1] what the key of a task's hash begins with
-- ARGV[2] no counting when there are more than this
-- Returns how many there are, and how many of them are quarantined; -1 for the second when they were not counted.
local n = redis.call("ZCARD", KEYS[1])
if n > tonumber(ARGV[2]) then
  return {n, -1}
end
local quarantined = 0
for _, id in ipairs(redis.call("ZRANGE", KEYS[1], 0, -1)) do
  if redis.pcall("HGET", ARGV[1] .. id, "drover_end") == "quarantined" then
    quarantined = quarantined + 1
  end
end
return {n, quarantined}
