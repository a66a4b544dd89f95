package budget

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// Limits are what all queues together may have; 0 is no limit.
type Limits struct {
	Processes int
	Memory    settings.Bytes
}

func (l Limits) none() bool { return l.Processes <= 0 && l.Memory <= 0 }

// Need is what a queue says of itself whenever it looks at its number of processes.
type Need struct {
	User  bool // rather than a system queue
	Wants int  // processes that it would start now
	Min   int  // processes that it keeps although they are idle
	// Idle and Busy processes take jobs, Leaving ones are on their way out. Those that start are known to the seat.
	Idle, Busy, Leaving int
}

// Grant is what a queue gets.
type Grant struct {
	Start int    // it may start so many now; they count until Give
	Leave int    // it should let so many go now, after their jobs, the idle ones first
	Why   string // it gets no more, or should let some go; empty when nothing is short
	// Again is after how long to ask again although nothing has changed; 0 for no need.
	Again time.Duration
}

// NoLimit is the room where there is no limit.
const NoLimit = math.MaxInt32

// Budget is what all queues of a manager share. It is safe for concurrent use.
type Budget struct {
	limits func() Limits

	mu    sync.Mutex
	seats []*Seat
}

// New returns a budget without seats. The limits are asked for whenever something is shared, and must not block.
func New(limits func() Limits) *Budget { return &Budget{limits: limits} }

// Seat is one queue's part in the budget.
type Seat struct {
	budget *Budget
	name   string
	plugin string
	kick   func()

	// Below the budget's mu.
	need    Need
	has     int            // processes that were granted and not given back
	since   time.Time      // since when it wants without getting
	served  time.Time      // when it last got a process
	weighed int            // processes whose memory is known
	memory  settings.Bytes // of these
	mean    settings.Bytes // of one, as far as that was ever known; 0 when it never was
}

// Join adds a queue of a plugin. The kick is called when it should ask again; it must not block nor call the budget.
func (b *Budget) Join(queue, plugin string, kick func()) *Seat {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Seat{budget: b, name: queue, plugin: plugin, kick: kick}
	b.seats = append(b.seats, s)
	return s
}

// Quit takes the seat away, with all that it had.
func (s *Seat) Quit() {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seats = slices.DeleteFunc(b.seats, func(other *Seat) bool { return other == s })
	b.tell(nil, b.share(time.Now()))
}

// Ask says what the queue needs now, in place of what it said before, and returns what it gets.
func (s *Seat) Ask(n Need) Grant {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if n.Wants <= 0 {
		s.since = time.Time{}
	} else if s.since.IsZero() {
		s.since = now
	}
	s.need = n
	if b.limits().none() {
		s.has += n.Wants
		s.need.Wants, s.since, s.served = 0, time.Time{}, now
		return Grant{Start: n.Wants}
	}
	shares := b.share(now)
	mine := shares[slices.Index(b.seats, s)]
	if mine.Start > 0 {
		s.has += mine.Start
		s.need.Wants -= mine.Start
		s.served, s.since = now, now // the others come first now
		if s.need.Wants <= 0 {
			s.since = time.Time{}
		}
	}
	s.let(mine.Leave)
	b.tell(s, b.share(now))
	return mine
}

// let takes down that the queue was told to let processes go, until it says itself.
func (s *Seat) let(n int) {
	idle := min(n, s.need.Idle)
	s.need.Idle -= idle
	busy := min(n-idle, s.need.Busy)
	s.need.Busy -= busy
	s.need.Leaving += idle + busy
}

// Spare takes one process more than the queue needs, for a moment. It reports false when there is none that nobody waits for.
func (s *Seat) Spare() bool {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	limits, state := b.limits(), b.state(time.Now())
	if !limits.none() && !spare(limits, state, slices.Index(b.seats, s)) {
		return false
	}
	s.has++
	return true
}

// Give says that a process is gone, or that its start came to nothing.
func (s *Seat) Give() {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	s.has = max(0, s.has-1)
	s.need.Leaving = max(0, s.need.Leaving-1)
	if s.weighed > s.has {
		s.memory -= s.memory / settings.Bytes(s.weighed)
		s.weighed--
	}
	if !b.limits().none() {
		b.tell(nil, b.share(time.Now()))
	}
}

// Weigh says how much memory a number of the queue's processes have together.
func (s *Seat) Weigh(processes int, memory settings.Bytes) {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	s.weighed, s.memory = min(processes, s.has), memory
	if processes > 0 {
		s.mean = memory / settings.Bytes(processes)
	}
	if !b.limits().none() {
		b.tell(nil, b.share(time.Now()))
	}
}

// share returns what each seat gets now. The caller holds mu.
func (b *Budget) share(now time.Time) []Grant { return share(b.limits(), now, b.state(now)) }

// state is what the shares are made from. The caller holds mu.
func (b *Budget) state(time.Time) []party {
	state := make([]party, len(b.seats))
	for i, s := range b.seats {
		state[i] = party{Need: s.need, name: s.name, has: s.has, since: s.since, served: s.served, size: b.size(s)}
		state[i].memory = s.memory + settings.Bytes(max(0, s.has-s.weighed))*state[i].size
	}
	return state
}

// unknownSize is what a process is thought to take of a plugin of which none was ever seen.
const unknownSize = 32 * settings.MiB

// size is what one more process of the seat will take: what its own do, or did, or those of the same plugin. The caller holds mu.
func (b *Budget) size(s *Seat) settings.Bytes {
	if s.mean > 0 {
		return s.mean
	}
	var sum, n settings.Bytes
	for _, other := range b.seats {
		if other.plugin == s.plugin && other.mean > 0 {
			sum, n = sum+other.mean, n+1
		}
	}
	if n == 0 {
		return unknownSize
	}
	return sum / n
}

// tell kicks the seats that can do something about their shares now, except one. The caller holds mu.
func (b *Budget) tell(except *Seat, shares []Grant) {
	for i, s := range b.seats {
		if s != except && shares[i].Start+shares[i].Leave > 0 {
			s.kick()
		}
	}
}
