-- Returns the active tasks of a queue with their leases, as a flat list: key, lease; the lease is empty for none.
--
-- KEYS[1] active   KEYS[2] lease
local out = {}
for _, id in ipairs(redis.call("LRANGE", KEYS[1], 0, -1)) do
  out[#out + 1] = id
  out[#out + 1] = redis.call("ZSCORE", KEYS[2], id) or ""
end
return out
