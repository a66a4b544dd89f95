-- Gives a lock up for the token that has it.
--
-- KEYS[1] the lock
-- ARGV[1] token and a space, with which the value begins
-- Returns 1 when the token had the lock, 0 when it was gone or another has it.
local value = redis.call("GET", KEYS[1])
if not value or string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then
  return 0
end
return redis.call("DEL", KEYS[1])
