-- Notes that a manager is there, and forgets those that have not been for long, and sooner those in whose place it came.
--
-- KEYS[1] hash of managers by their instance
-- ARGV[1] instance
-- ARGV[2] what is to be known of it, JSON; empty takes it out
-- ARGV[3] seconds after which one that was not seen is forgotten
-- ARGV[4] seconds after which one that was not seen and bears the same name on the same host is forgotten: it was killed, and this
--         is it, started again
-- Returns a flat list, three values a manager: instance, Unix millisecond at which it was seen last, JSON; and at the end the
-- time of Redis, Unix millisecond. Only Redis's clock is used, so managers' clocks may differ.
local t = redis.call("TIME")
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local own
if ARGV[2] ~= "" then
  own = cjson.decode(ARGV[2])
  redis.call("HSET", KEYS[1], ARGV[1], string.format("%d ", now) .. ARGV[2])
elseif ARGV[1] ~= "" then
  redis.call("HDEL", KEYS[1], ARGV[1])
end

-- replaced reports whether a manager that was not seen for so long is one in whose place this one came.
local function replaced(silence, text)
  if not own or silence <= tonumber(ARGV[4]) * 1000 then
    return false
  end
  local readable, other = pcall(cjson.decode, text)
  return readable and type(other) == "table" and other.name == own.name and other.host == own.host
end

local out = {}
local all = redis.call("HGETALL", KEYS[1])
for i = 1, #all, 2 do
  local seen, text = string.match(all[i + 1], "^(%d+) (.*)$")
  if not seen or now - tonumber(seen) > tonumber(ARGV[3]) * 1000 or replaced(now - tonumber(seen), text) then
    redis.call("HDEL", KEYS[1], all[i])
  else
    out[#out + 1] = all[i]
    out[#out + 1] = seen
    out[#out + 1] = text
  end
end
out[#out + 1] = string.format("%d", now)
return out
