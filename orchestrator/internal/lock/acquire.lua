-- Takes a lock, or takes it again for the token that has it.
--
-- KEYS[1] the lock
-- ARGV[1] token and a space, with which the value begins
-- ARGV[2] value
-- ARGV[3] life in milliseconds
-- Returns an empty string when the token has the lock now, and the value of the one that has it otherwise.
local value = redis.call("GET", KEYS[1])
if value and string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then
  return value
end
redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3])
return ""
