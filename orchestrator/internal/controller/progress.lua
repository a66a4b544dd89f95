-- Publishes the progress of tasks of one queue, and keeps it with those that run, for whoever asks later.
--
-- KEYS[1] active, which names the queue's place in a Cluster
-- ARGV[1] what the key of a task's hash begins with
-- ARGV[2] channel of events
-- then two values a task: key, encoded event
-- Returns nothing. A task that does not run any more keeps none: its hash must not come back to life.
local events = {}
for i = 3, #ARGV, 2 do
  local task = ARGV[1] .. ARGV[i]
  if redis.pcall("HGET", task, "state") == "active" then
    redis.call("HSET", task, "drover_progress", ARGV[i + 1])
  end
  events[#events + 1] = ARGV[i + 1]
end
-- The encoding of events is such that batches joined end to end are one batch.
redis.call("PUBLISH", ARGV[2], table.concat(events))
