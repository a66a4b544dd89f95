-- Shows a part of a list or a sorted set of tasks, with what lies in Redis of each.
--
-- KEYS[1] the list or the sorted set
-- ARGV[1] what the key of a task's hash begins with
-- ARGV[2] "tail": a list from its right end; "up", "down": a sorted set by rising or falling score
-- ARGV[3] the task after which to go on; empty for the beginning
-- ARGV[4] its score; how far from the right end of a list it was
-- ARGV[5] at most so many tasks
-- ARGV[6] no further task when this many bytes of messages are together
-- Returns the number of tasks in all, "1" when there are more behind, and a flat list, thirteen values a task: key, score (of a
-- list its place), msg, state, pending_since, drover_failures, drover_kills, drover_interruptions, drover_losses, drover_end,
-- result, drover_history, drover_progress; empty where there is none. A task without a hash has an empty msg and state.
--
-- When the task to go on after is gone, a list goes on at its end, because tasks leave it there, and a sorted set with what
-- has the same score.
local how, after, mark = ARGV[2], ARGV[3], tonumber(ARGV[4]) or 0
local n, bytes = tonumber(ARGV[5]), tonumber(ARGV[6])
local slack = 10000
local total, start, entries = 0, 0, {}

if how == "tail" then
  total = redis.call("LLEN", KEYS[1])
  if after ~= "" then
    local at = redis.call("LPOS", KEYS[1], after, "RANK", -1, "MAXLEN", mark + slack)
    if at then
      start = total - at
    end
  end
  local ids = redis.call("LRANGE", KEYS[1], -(start + n), -(start + 1))
  for i = #ids, 1, -1 do
    entries[#entries + 1] = ids[i]
    entries[#entries + 1] = tostring(start + #ids - i)
  end
else
  total = redis.call("ZCARD", KEYS[1])
  local rank, range = "ZRANK", "ZRANGE"
  if how == "down" then
    rank, range = "ZREVRANK", "ZREVRANGE"
  end
  if after ~= "" then
    local at = redis.call(rank, KEYS[1], after)
    if at then
      start = at + 1
    elseif how == "up" then
      start = redis.call("ZCOUNT", KEYS[1], "-inf", "(" .. ARGV[4])
    else
      start = redis.call("ZCOUNT", KEYS[1], "(" .. ARGV[4], "+inf")
    end
  end
  entries = redis.call(range, KEYS[1], start, start + n - 1, "WITHSCORES")
end

local out = {total, ""}
local size, taken = 0, 0
for i = 1, #entries, 2 do
  local v = redis.pcall("HMGET", ARGV[1] .. entries[i], "msg", "state", "pending_since", "drover_failures", "drover_kills",
    "drover_interruptions", "drover_losses", "drover_end", "result", "drover_history", "drover_progress")
  if v.err then -- the key is no hash
    v = {}
  end
  out[#out + 1] = entries[i]
  out[#out + 1] = entries[i + 1]
  for f = 1, 11 do
    out[#out + 1] = v[f] or ""
  end
  taken = taken + 1
  size = size + #(v[1] or "")
  if size >= bytes then
    break
  end
end
if start + taken < total then
  out[2] = "1"
end
return out
