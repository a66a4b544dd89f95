// Package roster knows the managers that share a Redis: each writes down every few seconds that it is there.
//
// It is for people: the console lists the managers, and two that bear the same name are told of it. Nothing depends on it; whose
// tasks are abandoned is seen by their leases (package rescue). It does not know what a manager does: it is given a
// description. Run(ctx) writes until ctx ends, and then takes this manager out of the list.
package roster

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/broker"
)

const (
	// beat is how often a manager writes that it is there.
	beat = 5 * time.Second
	// forgetAfter is how long one that does not is still listed, so that it is seen that it has gone; unless another of its name on
	// its host has come: that is the same one, started again.
	forgetAfter = 10 * time.Minute
	// absentAfter is from when on one that has not written is called absent: three beats.
	absentAfter = 3 * beat
	// callTimeout bounds one call to Redis.
	callTimeout = time.Second
	// key is the hash of all managers.
	key = "drover:managers"
	// perManager is the stride of the script's answer.
	perManager = 3
)

//go:embed beat.lua
var beatSource string

// Manager is what is known of one manager.
type Manager struct {
	Name    string    `json:"name"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	State   string    `json:"state"` // "running" or "stopping"
	Queues  []string  `json:"queues"`
	Workers int       `json:"workers"` // processes
	Running int       `json:"running"` // tasks

	// Silence is since how long it has not written, by the clock of Redis.
	Silence time.Duration `json:"-"`
	// Own is true for the manager that was asked.
	Own bool `json:"-"`

	instance string
	seen     time.Time
}

// Absent reports whether it has been silent for so long that it is most likely dead, frozen or cut off.
func (m Manager) Absent() bool { return m.Silence > absentAfter }

// Deps are what a roster needs.
type Deps struct {
	Redis redis.UniversalClient
	// Self describes this manager as it is now. It must not block.
	Self func() Manager
	Log  *slog.Logger
}

// Roster is the list of managers, with this one in it while Run runs.
type Roster struct {
	Deps
	instance string
	script   *redis.Script
	every    time.Duration
	told     bool                 // that another manager bears the same name
	twins    map[string]time.Time // when the others of this name were seen to have written
}

// New returns a roster that has written nothing.
func New(d Deps) *Roster {
	return &Roster{Deps: d, instance: rand.Text(), script: broker.Script(d.Redis, beatSource), every: beat}
}

// Run writes that this manager is there until ctx ends, and then that it has gone.
func (r *Roster) Run(ctx context.Context) error {
	ticker := time.NewTicker(r.every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if all, _, err := r.beat(ctx, r.instance, r.Self()); err == nil {
			r.tellTwins(all)
		} // else it is tried again, and others tell that Redis is away
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout/4)
	defer cancel()
	_, _, _ = r.call(leaving, r.instance, "") // one that could not say so is forgotten later
	return nil
}

// List returns the managers by name, those that have been silent for up to ten minutes included, and how far the clock of Redis is
// ahead of this machine's. An error says that Redis does not answer.
func (r *Roster) List(ctx context.Context) (managers []Manager, ahead time.Duration, err error) {
	began := time.Now()
	managers, now, err := r.call(ctx, "", "")
	if err != nil {
		return nil, 0, err
	}
	half := time.Since(began) / 2
	return managers, now.Sub(began.Add(half)), nil
}

// tellTwins says once that another manager bears the name of this one, and lives.
func (r *Roster) tellTwins(all []Manager) {
	self, before := r.Self(), r.twins
	r.twins = map[string]time.Time{}
	for _, m := range all {
		if m.Name != self.Name || m.Own || m.Absent() {
			continue
		}
		r.twins[m.instance] = m.seen
		if first, known := before[m.instance]; !known || !m.seen.After(first) {
			continue // it may be what this manager left when it was killed
		}
		if !r.told {
			r.Log.Warn("another manager has the same name; give each its own with manager.name", "name", m.Name, "host", m.Host, "pid", m.PID)
		}
		r.told = true
		return
	}
	r.told = false
}

func (r *Roster) beat(ctx context.Context, instance string, self Manager) ([]Manager, time.Time, error) {
	text, err := json.Marshal(self)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("describe this manager: %w", err)
	}
	return r.call(ctx, instance, string(text))
}

// call runs the script and reads its answer. What cannot be read is left out.
func (r *Roster) call(ctx context.Context, instance, text string) ([]Manager, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	values, err := r.script.Run(ctx, r.Redis, []string{key}, instance, text, int(forgetAfter/time.Second), int(absentAfter/time.Second)).StringSlice()
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read the list of managers: %w", err)
	}
	if len(values) == 0 {
		return nil, time.Time{}, fmt.Errorf("read the list of managers: the answer is empty")
	}
	now := millis(values[len(values)-1])
	var all []Manager
	for ; len(values) > perManager; values = values[perManager:] {
		var m Manager
		if json.Unmarshal([]byte(values[2]), &m) != nil {
			continue
		}
		m.instance, m.seen = values[0], millis(values[1])
		m.Silence, m.Own = max(0, now.Sub(m.seen)), m.instance == r.instance
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Manager) int { return strings.Compare(a.Name+" "+a.Host, b.Name+" "+b.Host) })
	return all, now, nil
}

func millis(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n)
}
