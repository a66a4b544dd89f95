package settings

import (
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings/timetable"
)

// Version counts the snapshots of one manager; it starts at 1 and grows by one with every change.
type Version uint64

// LockPolicy says what happens to a task whose lock another task holds.
type LockPolicy string

// The lock policies.
const (
	// LockJoin waits for the holder's result and ends with it.
	LockJoin LockPolicy = "join"
	// LockReturn puts the task back with a delay.
	LockReturn LockPolicy = "return"
	// LockSkip ends the task without running it.
	LockSkip LockPolicy = "skip"
)

// LockMissing says what a task does that needs a lock while the store of locks does not answer.
type LockMissing string

// The ways to do without a store of locks.
const (
	// LockMissingWait keeps tasks until the store answers.
	LockMissingWait LockMissing = "wait"
	// LockMissingRun runs tasks without a lock.
	LockMissingRun LockMissing = "run"
)

// Priority says whether people wait for a queue's tasks.
type Priority string

// The priorities.
const (
	// PriorityUser marks a queue that people wait for.
	PriorityUser Priority = "user"
	// PrioritySystem marks a queue that never takes what a user queue waits for.
	PrioritySystem Priority = "system"
)

// MaxCapacity bounds the tasks that one queue may hold in one manager: slots * max_workers + buffer.
const MaxCapacity = 65536

// Queue holds the settings of one queue. The table says what each means; zero stands for off where off is allowed.
type Queue struct {
	MaxWorkers int
	MinWorkers int
	// Slots is the number of tasks that one process runs at once.
	Slots  int
	Buffer int

	WorkerIdle     time.Duration
	WorkerLifetime time.Duration
	WorkerMaxTasks int
	MemorySoft     Bytes
	MemoryMax      Bytes

	TaskTimeout time.Duration
	KillGrace   time.Duration

	MaxFailures     int
	MaxKills        int
	RetryBackoff    time.Duration
	RetryBackoffMax time.Duration

	Rate       Rate
	Retention  time.Duration
	LockPolicy LockPolicy
	// LockMissing is what tasks do while the store of locks does not answer.
	LockMissing LockMissing
	Priority    Priority
	// OnDead is the queue into which a task is put for each task of this one that dies; empty for none.
	OnDead string
}

// Capacity is the number of tasks that the queue may hold in this manager, running and buffered together.
func (q Queue) Capacity() int {
	return q.Slots*q.MaxWorkers + q.Buffer
}

// Manager holds the settings of the manager itself.
type Manager struct {
	DrainTimeout time.Duration
	StartTimeout time.Duration
	// MaxProcesses and MaxMemory are the budget of all queues together; 0 for none.
	MaxProcesses int
	MaxMemory    Bytes
}

// Overlap says what becomes of a due time of a schedule whose earlier run has not ended.
type Overlap string

// The ways to treat an overlap.
const (
	OverlapSkip    Overlap = "skip"
	OverlapQueue   Overlap = "queue"
	OverlapReplace Overlap = "replace"
	OverlapAllow   Overlap = "allow"
)

// Switch is on or off, in the words of YAML.
type Switch string

// The positions of a switch.
const (
	SwitchOn  Switch = "true"
	SwitchOff Switch = "false"
)

// Schedule holds the settings of one schedule. The table says what each means.
type Schedule struct {
	Cron     string        // empty for Every
	Every    time.Duration // 0 for Cron
	TimeZone string
	Jitter   time.Duration
	Overlap  Overlap
	CatchUp  timetable.CatchUp
	Payload  string // a JSON object
	Enabled  Switch
}

// Timetable is when the schedule of that name is due. The error says what does not hold.
func (s Schedule) Timetable(name string) (*timetable.Timetable, error) {
	return timetable.New(timetable.Spec{Name: name, Cron: s.Cron, Every: s.Every, Zone: s.TimeZone, Jitter: s.Jitter})
}

// Snapshot is all settings at one moment. It is shared by everybody who reads it: nobody may change it.
type Snapshot struct {
	Version   Version
	Manager   Manager
	Queues    map[string]Queue
	Schedules map[string]Schedule
}

// Queue returns the settings of the queue, and whether there is such a queue.
func (s *Snapshot) Queue(name string) (Queue, bool) {
	q, ok := s.Queues[name]
	return q, ok
}
