-- Carries out verdicts: moves each task that we still hold to where it goes, writes its terminal record, and publishes
-- what happened, all or nothing for each task. We hold it when it is active and bears the token of the call that took it;
-- so a call that is repeated because its answer was lost, or that comes after another manager took the task, changes nothing.
--
-- KEYS[1] active      KEYS[2] lease      KEYS[3] pending         KEYS[4] retry       KEYS[5] archived
-- KEYS[6] completed   KEYS[7] processed  KEYS[8] processed:day   KEYS[9] failed      KEYS[10] failed:day
-- KEYS[11] scheduled   KEYS[12] deaths that are to be told
-- ARGV[1] what the key of a task's hash begins with
-- ARGV[2] what the key of a record begins with
-- ARGV[3] channel of events
-- ARGV[4] Unix second at which the counts of the day expire
-- ARGV[5] now, Unix second
-- ARGV[6] now, Unix nanosecond
-- ARGV[7] archived tasks that died before this Unix second are deleted
-- ARGV[8] at most this many of them at once, the oldest first
-- then for each task:
--   key
--   holder       token of the call that took it
--   move         d done, k kept, r retry, b bury, g give back, s give back with a delay
--   record       terminal record; empty for none
--   ttl          seconds that the record is kept
--   event        encoded events; empty for none
-- and further, by its move:
--   d            asynq's uniqueness lock of the task, empty for none
--   k            the same, asynq message, result, Unix second until which asynq keeps it
--   r            failures, kills, interruptions, losses, history, asynq message, Unix second at which it is due
--   b            failures, kills, interruptions, losses, history, asynq message, name of the state in which it ended,
--                what is to be told of it, empty for nothing
--   g            failures, kills, interruptions, losses, history, its place, "1" when it is a suspect
--   s            failures, kills, interruptions, losses, history, Unix second at which it is due, "1" when it is a suspect
-- A history is the last runs that did not end well, encoded; empty for none.
-- A place is a number of 19 digits that grows with the order in which tasks were first taken. Those that are given back
-- stand at the head of the queue in that order, whatever the order in which they came back. The caller sorts the given
-- back ones of a call by falling place.
-- Returns a list with 1 for each task that was moved and 0 for each that was no longer ours.
-- A key of another type than it must have is an error before anything is moved: the call is repeated until somebody has mended it.
local types = {"list", "zset", "list", "zset", "zset", "zset", "string", "string", "string", "string", "zset", "list"}
for n, want in ipairs(types) do
  local is = redis.call("TYPE", KEYS[n]).ok
  if is ~= want and is ~= "none" then
    return redis.error_reply("WRONGTYPE " .. KEYS[n] .. " is a " .. is .. " and must be a " .. want .. ": move it away")
  end
end

local further = {d = 1, k = 4, r = 7, b = 8, g = 7, s = 7}
local maxAhead = 1000
local results, events, freed, back = {}, {}, {}, {}
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

local function unlock(lock, id)
  if lock ~= "" and redis.call("GET", lock) == id then
    redis.call("DEL", lock)
  end
end

local function setCounters(task, i)
  redis.call("HSET", task, "drover_failures", ARGV[i], "drover_kills", ARGV[i + 1],
    "drover_interruptions", ARGV[i + 2], "drover_losses", ARGV[i + 3])
  if ARGV[i + 4] ~= "" then
    redis.call("HSET", task, "drover_history", ARGV[i + 4])
  end
end

local function setSuspect(task, suspect)
  if suspect == "1" then
    redis.call("HSET", task, "drover_suspect", "1")
    redis.call("HDEL", task, "drover_holder")
  else
    redis.call("HDEL", task, "drover_holder", "drover_suspect")
  end
end

local moves = {}

function moves.d(id, task, i)
  processed = processed + 1
  redis.call("DEL", task)
  unlock(ARGV[i], id)
end

function moves.k(id, task, i)
  processed = processed + 1
  redis.call("ZADD", KEYS[6], ARGV[i + 3], id)
  redis.call("HSET", task, "msg", ARGV[i + 1], "state", "completed", "result", ARGV[i + 2])
  redis.call("HDEL", task, "drover_holder", "drover_suspect")
  unlock(ARGV[i], id)
end

function moves.r(id, task, i)
  processed, failed = processed + 1, failed + 1
  setCounters(task, i)
  redis.call("ZADD", KEYS[4], ARGV[i + 6], id)
  redis.call("HSET", task, "msg", ARGV[i + 5], "state", "retry")
  redis.call("HDEL", task, "drover_holder", "drover_suspect")
end

function moves.b(id, task, i)
  processed, failed, buried = processed + 1, failed + 1, buried + 1
  setCounters(task, i)
  redis.call("ZADD", KEYS[5], ARGV[5], id)
  redis.call("HSET", task, "msg", ARGV[i + 5], "state", "archived", "drover_end", ARGV[i + 6])
  redis.call("HDEL", task, "drover_holder", "drover_suspect")
  if ARGV[i + 7] ~= "" then
    redis.call("LPUSH", KEYS[12], ARGV[i + 7])
  end
end

function moves.g(id, task, i)
  setCounters(task, i)
  redis.call("HSET", task, "state", "pending", "pending_since", ARGV[6], "drover_order", ARGV[i + 5])
  setSuspect(task, ARGV[i + 6])
  back[#back + 1] = {id = id, place = ARGV[i + 5]}
end

function moves.s(id, task, i)
  setCounters(task, i)
  redis.call("ZADD", KEYS[11], ARGV[i + 5], id)
  redis.call("HSET", task, "state", "scheduled")
  setSuspect(task, ARGV[i + 6])
end

local function putBack()
  -- Those that were given back before and have an earlier place than the last of these are lifted out and merged in.
  local ahead = {}
  while #ahead < maxAhead do
    local id = redis.call("LINDEX", KEYS[3], -1)
    local place = id and redis.call("HGET", ARGV[1] .. id, "drover_order")
    if not place or place >= back[1].place then
      break
    end
    redis.call("RPOP", KEYS[3])
    ahead[#ahead + 1] = {id = id, place = place}
  end
  local n = #ahead
  for _, t in ipairs(back) do
    while n > 0 and ahead[n].place > t.place do
      redis.call("RPUSH", KEYS[3], ahead[n].id)
      n = n - 1
    end
    redis.call("RPUSH", KEYS[3], t.id)
  end
  while n > 0 do
    redis.call("RPUSH", KEYS[3], ahead[n].id)
    n = n - 1
  end
end

local function trimArchive()
  for _, id in ipairs(redis.call("ZRANGEBYSCORE", KEYS[5], "-inf", "(" .. ARGV[7], "LIMIT", 0, ARGV[8])) do
    redis.call("DEL", ARGV[1] .. id)
    redis.call("ZREM", KEYS[5], id)
  end
end

local i = 9
while i <= #ARGV do
  local id, move = ARGV[i], ARGV[i + 2]
  local task = ARGV[1] .. id
  if redis.pcall("HGET", task, "drover_holder") == ARGV[i + 1] and redis.call("LREM", KEYS[1], -1, id) == 1 then
    freed[#freed + 1] = id
    moves[move](id, task, i + 6)
    if ARGV[i + 3] ~= "" then
      redis.call("SET", ARGV[2] .. id, ARGV[i + 3], "EX", ARGV[i + 4])
    end
    if ARGV[i + 5] ~= "" then
      events[#events + 1] = ARGV[i + 5]
    end
    results[#results + 1] = 1
  else
    results[#results + 1] = 0
  end
  i = i + 6 + further[move]
end

if #freed > 0 then
  redis.call("ZREM", KEYS[2], unpack(freed))
end
if #back > 0 then
  putBack()
end
count(KEYS[7], processed)
countDay(KEYS[8], processed)
count(KEYS[9], failed)
countDay(KEYS[10], failed)
if buried > 0 then
  trimArchive()
end
if #events > 0 then
  -- The encoding of events is such that batches joined end to end are one batch.
  redis.call("PUBLISH", ARGV[3], table.concat(events))
end
return results
