package direct

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// turnSource decides one due time of a schedule, and submits its run in the same step, so that whoever dies when, a due time is
// decided once. Only the clock of Redis counts.
//
// KEYS[1..4] as in submitSource
// KEYS[5] the schedule's hash: see task.Keys.Schedule
// ARGV[1] what decides: "due", a due time; "queued", the run that waits; "hand", a run that is asked for now
// ARGV[2] of "due": what the caller believes to be decided, in Unix milliseconds
// ARGV[3] of "due" and "queued": the due time, in Unix milliseconds
// ARGV[4] of "due": when it may be run, in Unix milliseconds
// ARGV[5] of "due": how many due times are missed with this
// ARGV[6] of "due": what to do when the earlier run has not ended, an Overlap; "missed" runs nothing at all
// ARGV[7] the manager's name
// ARGV[8...] as ARGV[1...] of submitSource, for the one task
//
// Returns what was done, a Verdict, and the time of Redis in Unix milliseconds.
//
//nolint:gosec // no secret
const turnSource = submitLua + `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local hash = KEYS[5]
local seen = redis.call('HMGET', hash, '` + task.ScheduleDecided + `', '` + task.SchedulePaused + `', '` + task.ScheduleLast + `', '` + task.ScheduleQueued + `')
local decided, paused, last, queued = seen[1], seen[2], seen[3], seen[4]
local busy = last and lives(ARGV[8], last)

local function fire()
	local found = submit(8)
	redis.call('HSET', hash, '` + task.ScheduleLast + `', ARGV[12], '` + task.ScheduleLastAt + `', string.format('%d', now), '` + task.ScheduleLastBy + `', ARGV[7])
	if ARGV[3] ~= '' then
		redis.call('HSET', hash, '` + task.ScheduleLastDue + `', ARGV[3])
	else
		redis.call('HDEL', hash, '` + task.ScheduleLastDue + `')
	end
	redis.call('HINCRBY', hash, '` + task.ScheduleFired + `', 1)
	return {found[1] == '' and 'fired' or 'joined', now}
end
local function skip()
	redis.call('HINCRBY', hash, '` + task.ScheduleSkipped + `', 1)
end

if ARGV[1] == 'hand' then
	return fire()
end
if paused then
	return {'paused', now}
end
if ARGV[1] == 'queued' then
	if queued ~= ARGV[3] then
		return {'moved', now}
	end
	if busy then
		return {'busy', now}
	end
	redis.call('HDEL', hash, '` + task.ScheduleQueued + `', '` + task.ScheduleReplace + `')
	return fire()
end

if decided ~= ARGV[2] then
	return {'moved', now}
end
if now < tonumber(ARGV[4]) then
	return {'early', now}
end
redis.call('HSET', hash, '` + task.ScheduleDecided + `', ARGV[3])
if ARGV[5] ~= '0' then
	redis.call('HINCRBY', hash, '` + task.ScheduleMissed + `', ARGV[5])
end
if ARGV[6] == 'missed' then
	return {'missed', now}
end
if busy and ARGV[6] ~= 'allow' then
	if ARGV[6] == 'skip' then
		skip()
		return {'skipped', now}
	end
	if queued then
		skip()
	end
	redis.call('HSET', hash, '` + task.ScheduleQueued + `', ARGV[3])
	if ARGV[6] == 'replace' then
		redis.call('HSET', hash, '` + task.ScheduleReplace + `', last)
	end
	return {'queued', now}
end
if queued then
	skip()
	redis.call('HDEL', hash, '` + task.ScheduleQueued + `', '` + task.ScheduleReplace + `')
end
return fire()
`

// Overlap says what a schedule does at a due time when its earlier run has not ended.
type Overlap string

// The ways to treat an overlap. But for OverlapAllow, two runs of a schedule never run at once.
const (
	// OverlapSkip leaves the due time out.
	OverlapSkip Overlap = "skip"
	// OverlapQueue lets the run wait until the earlier one has ended; of several that wait, the last remains.
	OverlapQueue Overlap = "queue"
	// OverlapReplace is OverlapQueue, and the earlier run is to be cancelled: the caller does that.
	OverlapReplace Overlap = "replace"
	// OverlapAllow submits it all the same.
	OverlapAllow Overlap = "allow"

	// overlapMissed runs nothing.
	overlapMissed Overlap = "missed"
)

// Verdict is what became of a turn.
type Verdict string

// The verdicts.
const (
	TurnFired   Verdict = "fired"   // the run was submitted
	TurnSkipped Verdict = "skipped" // the earlier run has not ended
	TurnQueued  Verdict = "queued"  // it waits for the end of the earlier run
	TurnMissed  Verdict = "missed"  // nothing was run, as was asked
	TurnMoved   Verdict = "moved"   // somebody else has decided: look again
	TurnEarly   Verdict = "early"   // it may not be run yet
	TurnPaused  Verdict = "paused"  // the schedule is paused
	TurnBusy    Verdict = "busy"    // what waits for the earlier run goes on waiting
)

// Turn is one due time of a schedule that is to be decided.
type Turn struct {
	Queue, Schedule string
	Payload         any
	// Manager is who decides.
	Manager string
	// Due is the due time, a whole second.
	Due time.Time
	// Queued is true for a run that was queued and may run when the earlier one has ended. Nothing below is looked at then.
	Queued bool
	// Decided is the latest due time that was decided, as the caller knows it.
	Decided time.Time
	// At is the moment from which on it may be run.
	At time.Time
	// Missed is how many due times are missed with this one; Run is false when nothing is run.
	Missed  int
	Run     bool
	Overlap Overlap
}

// TurnTaken is what became of a turn.
type TurnTaken struct {
	Verdict Verdict
	ID      task.ID   // of the run
	Now     time.Time // by the clock of Redis
}

// TakeTurn decides a due time, once for all who ask: managers with other clocks, and those that died and came back. Errors are those of
// Submit, and then nothing is decided.
func (c *Client) TakeTurn(ctx context.Context, t Turn) (TurnTaken, error) {
	what, overlap := "due", t.Overlap
	if t.Queued {
		what = "queued"
	}
	if !t.Run {
		overlap = overlapMissed
	}
	id := task.ScheduledID(t.Queue, t.Schedule, t.Due)
	return c.turn(ctx, t, id, what, millis(t.Decided), millis(t.Due), millis(t.At), t.Missed, string(overlap), t.Manager)
}

// RunSchedule submits a run of a schedule now, whatever is due or paused. The run counts as the schedule's latest.
func (c *Client) RunSchedule(ctx context.Context, queue, schedule string, payload any, manager string) (task.ID, error) {
	t := Turn{Queue: queue, Schedule: schedule, Payload: payload}
	taken, err := c.turn(ctx, t, task.ByHandID(queue, schedule), "hand", "", "", "", 0, "", manager)
	return taken.ID, err
}

func (c *Client) turn(ctx context.Context, t Turn, id task.ID, args ...any) (TurnTaken, error) {
	taken, err := c.takeTurn(ctx, t, id, args)
	if err != nil {
		return TurnTaken{}, fmt.Errorf("submit a run of schedule %s to queue %.80q: %w", t.Schedule, t.Queue, err)
	}
	return taken, nil
}

func (c *Client) takeTurn(ctx context.Context, t Turn, id task.ID, args []any) (TurnTaken, error) {
	info, err := c.queue(ctx, t.Queue)
	if err != nil {
		return TurnTaken{}, err
	}
	canonical, err := info.canonical(t.Payload)
	if err != nil {
		return TurnTaken{}, err
	}
	now := time.Now()
	e := newEntryOf(info, id, canonical, client.Options{}, now)
	keys, submit := submitArgs(t.Queue, now, []*entry{e})
	keys = append(keys, task.KeysOf(t.Queue).Schedule(t.Schedule))
	answer, err := ask(ctx, c, func(ctx context.Context) ([]any, error) {
		return c.scripts.turn.Run(ctx, c.rdb, keys, append(args, submit...)...).Slice()
	})
	switch {
	case err != nil:
		return TurnTaken{}, err
	case len(answer) != 2: //nolint:mnd // as the script returns
		return TurnTaken{}, fmt.Errorf("%w: Redis answered with %d values", client.ErrUnavailable, len(answer))
	}
	ms, _ := answer[1].(int64)
	taken := TurnTaken{Verdict: Verdict(text(answer[0])), ID: e.id, Now: time.UnixMilli(ms)}
	if taken.Verdict == "joined" { // only a command that was sent twice finds its own task
		taken.Verdict = TurnFired
	}
	return taken, nil
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
