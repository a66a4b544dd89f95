-- Counts the dead letters that ended in one state.
--
-- KEYS[1] archived
-- ARGV[1] what the key of a task's hash begins with
-- ARGV[2] no counting when there are more dead letters than this
-- ARGV[3] the state
-- Returns how many there are; -1 when they were not counted.
if redis.call("ZCARD", KEYS[1]) > tonumber(ARGV[2]) then
  return -1
end
local n = 0
for _, id in ipairs(redis.call("ZRANGE", KEYS[1], 0, -1)) do
  if redis.pcall("HGET", ARGV[1] .. id, "drover_end") == ARGV[3] then
    n = n + 1
  end
end
return n
