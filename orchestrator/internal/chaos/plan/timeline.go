package plan

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// longRun is how long a run must be for the faults that outlast leases.
const longRun = time.Minute

// timelines gives each manager one of its own, and one each to the workers, Redis and memcached. What is on one timeline does
// not overlap; what is on different ones does, and is meant to.
func timelines(o Options) []Timeline {
	var lines []Timeline
	managers := o.kinds("manager-")
	r := rand.New(rand.NewPCG(o.Seed, 2)) //nolint:gosec // repeatable on purpose
	dealt := newDeck(r, managers)
	for i := range o.Managers {
		if len(managers) == 0 {
			break
		}
		lines = append(lines, Timeline{Manager: i, Injections: strike(r, o, dealt, o.pace(4*time.Second))})
	}
	for i, victim := range []struct {
		prefix string
		pause  time.Duration
	}{{"worker-", 1500 * time.Millisecond}, {"redis-", 6 * time.Second}, {"memcached-", 5 * time.Second}} {
		kinds := o.kinds(victim.prefix)
		if len(kinds) == 0 || victim.prefix == "memcached-" && o.Locks != LocksInMemcached {
			continue
		}
		r := rand.New(rand.NewPCG(o.Seed, 3+uint64(i))) //nolint:gosec // repeatable on purpose
		lines = append(lines, Timeline{Manager: -1, Injections: strike(r, o, newDeck(r, kinds), o.pace(victim.pause))})
	}
	return lines
}

// haste divides times that are shorter in a short run.
func (o Options) haste() time.Duration {
	if o.Duration < longRun {
		return 2
	}
	return 1
}

// pace is the mean time between two faults of a timeline: shorter in a short run, so that all kinds have their turn.
func (o Options) pace(mean time.Duration) time.Duration {
	if o.Duration < longRun {
		return mean / 3
	}
	return mean
}

// kinds returns the chosen faults that begin with the prefix.
func (o Options) kinds(prefix string) []Kind {
	return slices.DeleteFunc(slices.Clone(o.Faults), func(k Kind) bool { return !strings.HasPrefix(string(k), prefix) })
}

// strike fills the time with faults of a deck.
func strike(r *rand.Rand, o Options, d *deck, mean time.Duration) []Injection {
	var injections []Injection
	rest := func() time.Duration { return mean/2 + time.Duration(r.Int64N(int64(mean))) }
	for at := rest(); at < o.Duration; {
		in := Injection{Kind: d.next(), At: at, Choice: r.Uint64()}
		in.For = lasts(r, o, in.Kind)
		injections = append(injections, in)
		at += in.For + rest()
	}
	return injections
}

// lasts picks how long a fault lasts.
func lasts(r *rand.Rand, o Options, kind Kind) time.Duration {
	s, ok := shapes()[kind]
	switch {
	case !ok:
		return 0
	case o.Duration < longRun:
		s.most = max(s.least+1, s.most/2)
	case s.long > 0 && r.IntN(4) == 0:
		return s.long
	}
	return s.least + time.Duration(r.Int64N(int64(s.most-s.least)))
}

// deck deals kinds such that each has had its turn before one comes again.
type deck struct {
	r     *rand.Rand
	kinds []Kind
	left  []Kind
}

func newDeck(r *rand.Rand, kinds []Kind) *deck { return &deck{r: r, kinds: kinds} }

func (d *deck) next() Kind {
	if len(d.left) == 0 {
		d.left = slices.Clone(d.kinds)
		d.r.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	}
	k := d.left[0]
	d.left = d.left[1:]
	return k
}
