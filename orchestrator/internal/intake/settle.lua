-- Carries out verdicts: moves each task that we still hold to where it goes, writes its terminal record, and publishes
-- what happened, all or nothing for each task. We hold it when it is active and bears the token of the call that took it;
-- so a call that is repeated because its answer was lost, or that comes after another manager took the task, changes nothing.
--
-- KEYS[1] active      KEYS[2] lease      KEYS[3] pending         KEYS[4] retry       KEYS[5] archived
-- KEYS[6] completed   KEYS[7] processed  KEYS[8] processed:day   KEYS[9] failed      KEYS[10] failed:day
-- ARGV[1] what the key of a task's hash begins with
-- ARGV[2] what the key of a record begins with
-- ARGV[3] channel of events
-- ARGV[4] Unix second at which the counts of the day expire
-- ARGV[5] now, Unix second
-- ARGV[6] now, Unix nanosecond
-- ARGV[7] archived tasks that died before this Unix second are deleted
-- ARGV[8] at most this many archived tasks are kept
-- then fourteen values a task:
--   key
--   holder       token of the call that took it
--   move         f finish, r retry, b bury, g give back
--   msg          asynq message for r and b, and for f with a score; else empty
--   score        Unix second at which a retry is due, or until which asynq keeps a finished task of a foreign client; else 0
--   record       terminal record; empty for none
--   ttl          seconds that the record is kept
--   event        encoded events; empty for none
--   unique       asynq's uniqueness lock of the task; empty for none
--   end          name of the state in which a buried task ended
--   failures, kills, interruptions, losses
-- Returns a list with 1 for each task that was moved and 0 for each that was no longer ours.
local stride = 14
local results = {}
local events = {}
local processed, failed, buried = 0, 0, 0

local function count(key, n)
  if n > 0 then
    redis.call("INCRBY", key, n)
  end
end

local function countDay(key, n)
  if n > 0 and redis.call("INCRBY", key, n) == n then
    redis.call("EXPIREAT", key, ARGV[4])
  end
end

for i = 9, #ARGV, stride do
  local id, holder, move = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local task = ARGV[1] .. id
  if redis.call("HGET", task, "drover_holder") ~= holder or redis.call("LREM", KEYS[1], -1, id) == 0 then
    results[#results + 1] = 0
  else
    redis.call("HDEL", task, "drover_holder")
    redis.call("ZREM", KEYS[2], id)
    if move == "f" then
      processed = processed + 1
      if ARGV[i + 4] ~= "0" then
        redis.call("ZADD", KEYS[6], ARGV[i + 4], id)
        redis.call("HSET", task, "msg", ARGV[i + 3], "state", "completed")
      else
        redis.call("DEL", task)
      end
      if ARGV[i + 8] ~= "" and redis.call("GET", ARGV[i + 8]) == id then
        redis.call("DEL", ARGV[i + 8])
      end
    else
      redis.call("HSET", task, "drover_failures", ARGV[i + 10], "drover_kills", ARGV[i + 11],
        "drover_interruptions", ARGV[i + 12], "drover_losses", ARGV[i + 13])
      if move == "g" then
        redis.call("RPUSH", KEYS[3], id)
        redis.call("HSET", task, "state", "pending", "pending_since", ARGV[6])
      elseif move == "r" then
        processed, failed = processed + 1, failed + 1
        redis.call("ZADD", KEYS[4], ARGV[i + 4], id)
        redis.call("HSET", task, "msg", ARGV[i + 3], "state", "retry")
      else
        processed, failed, buried = processed + 1, failed + 1, buried + 1
        redis.call("ZADD", KEYS[5], ARGV[5], id)
        redis.call("HSET", task, "msg", ARGV[i + 3], "state", "archived", "drover_end", ARGV[i + 9])
      end
    end
    if ARGV[i + 5] ~= "" then
      redis.call("SET", ARGV[2] .. id, ARGV[i + 5], "EX", ARGV[i + 6])
    end
    if ARGV[i + 7] ~= "" then
      events[#events + 1] = ARGV[i + 7]
    end
    results[#results + 1] = 1
  end
end

count(KEYS[7], processed)
countDay(KEYS[8], processed)
count(KEYS[9], failed)
countDay(KEYS[10], failed)
if buried > 0 then
  local old = redis.call("ZRANGEBYSCORE", KEYS[5], "-inf", ARGV[7])
  local extra = redis.call("ZCARD", KEYS[5]) - #old - tonumber(ARGV[8])
  if extra > 0 then
    for _, id in ipairs(redis.call("ZRANGE", KEYS[5], #old, #old + extra - 1)) do
      old[#old + 1] = id
    end
  end
  for _, id in ipairs(old) do
    redis.call("DEL", ARGV[1] .. id)
    redis.call("ZREM", KEYS[5], id)
  end
end
if #events > 0 then
  -- The encoding of events is such that batches joined end to end are one batch.
  redis.call("PUBLISH", ARGV[3], table.concat(events))
end
return results
