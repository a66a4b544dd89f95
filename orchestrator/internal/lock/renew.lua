-- Extends a lock for the token that has it.
--
-- KEYS[1] the lock
-- ARGV[1] token and a space, with which the value begins
-- ARGV[2] life in milliseconds
-- Returns 1 when the token has the lock, 0 when it is gone or another has it.
local value = redis.call("GET", KEYS[1])
if not value or string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then
  return 0
end
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return 1
