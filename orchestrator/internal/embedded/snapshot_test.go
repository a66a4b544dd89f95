package embedded_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/embedded"
)

// content is everything in a database as a client sees it.
func content(t *testing.T, c *redis.Client) map[string]any {
	t.Helper()
	ctx := context.Background()
	out := map[string]any{}
	for _, key := range must[[]string](t)(c.Keys(ctx, "*").Result()) {
		var v any
		switch kind := must[string](t)(c.Type(ctx, key).Result()); kind {
		case "string":
			v = must[string](t)(c.Get(ctx, key).Result())
		case "hash":
			v = must[map[string]string](t)(c.HGetAll(ctx, key).Result())
		case "list":
			v = must[[]string](t)(c.LRange(ctx, key, 0, -1).Result())
		case "set":
			v = must[[]string](t)(c.SMembers(ctx, key).Result())
		case "zset":
			v = must[[]redis.Z](t)(c.ZRangeWithScores(ctx, key, 0, -1).Result())
		case "stream":
			v = must[[]redis.XMessage](t)(c.XRange(ctx, key, "-", "+").Result())
		default:
			t.Fatalf("key %q has the unknown type %q", key, kind)
		}
		out[key] = v
	}
	return out
}

func randomText(r *rand.Rand) string {
	b := make([]byte, r.IntN(40))
	for i := range b {
		b[i] = byte(r.UintN(256))
	}
	return string(b)
}

func randomScore(r *rand.Rand) float64 {
	switch r.IntN(8) {
	case 0:
		return math.Inf(1)
	case 1:
		return math.Inf(-1)
	case 2:
		return float64(r.Int64()) // beyond what a float holds exactly
	case 3:
		return math.SmallestNonzeroFloat64
	case 4:
		return float64(time.Now().UnixNano()) / 1e9
	default:
		for {
			if f := math.Float64frombits(r.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
				return f
			}
		}
	}
}

// fill puts n random keys of all types into one database.
func fill(t *testing.T, c *redis.Client, r *rand.Rand, n int) {
	t.Helper()
	ctx := context.Background()
	p := c.Pipeline()
	for i := range n {
		key := fmt.Sprintf("%d:%s", i, randomText(r))
		items := 1 + r.IntN(12)
		for range items {
			switch i % 6 {
			case 0:
				p.Set(ctx, key, randomText(r), 0)
			case 1:
				p.HSet(ctx, key, randomText(r), randomText(r))
			case 2:
				p.RPush(ctx, key, randomText(r))
			case 3:
				p.SAdd(ctx, key, randomText(r))
			case 4:
				p.ZAdd(ctx, key, redis.Z{Score: randomScore(r), Member: randomText(r)})
			case 5:
				p.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"a" + randomText(r), randomText(r)}})
			}
		}
		if r.IntN(3) == 0 {
			p.PExpire(ctx, key, time.Hour+time.Duration(r.Int64N(1e12)))
		}
	}
	if _, err := p.Exec(ctx); err != nil {
		t.Fatal(err)
	}
}

// Whatever is in the broker, of every type, with any bytes in keys and values, is the
// same after a stop and a start, list order, scores and expiry included.
func TestRandomContentSurvivesARestart(t *testing.T) {
	t.Parallel()
	const slack = 3 * time.Second // on a busy machine; the shortest expiry is an hour
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			dir := t.TempDir()
			first := start(t, embedded.Options{Dir: dir, SnapshotEvery: time.Hour})
			c := first.client(t)
			fill(t, c, rand.New(rand.NewPCG(seed, 1)), 120)
			before := content(t, c)
			expiry := map[string]time.Duration{}
			for key := range before {
				expiry[key] = must[time.Duration](t)(c.PTTL(ctx, key).Result())
			}
			read := time.Now()
			first.stop(t)

			c = start(t, embedded.Options{Dir: dir}).client(t)
			if after := content(t, c); !reflect.DeepEqual(before, after) {
				t.Errorf("the content differs:\nbefore %q\nafter  %q", before, after)
			}
			for key, was := range expiry {
				is := must[time.Duration](t)(c.PTTL(ctx, key).Result())
				if was < 0 && is != was {
					t.Errorf("%q had no expiry and has %v", key, is)
				}
				if off := was - is; was >= 0 && (off < -slack || off > time.Since(read)+slack) {
					t.Errorf("%q had %v left and has %v after %v", key, was, is, time.Since(read))
				}
			}
		})
	}
}

// Every numbered database that a client may select is kept, and no other can be selected.
func TestAllDatabasesAreKept(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	first := start(t, embedded.Options{Dir: dir})
	conn := first.client(t).Conn()
	defer func() { _ = conn.Close() }()
	for db := range 16 {
		if err := conn.Select(ctx, db).Err(); err != nil {
			t.Fatal(err)
		}
		if err := conn.Set(ctx, "k", db, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Select(ctx, 16).Err(); err == nil {
		t.Error("database 16 could be selected, and no snapshot holds it")
	}
	first.stop(t)

	again := start(t, embedded.Options{Dir: dir}).client(t).Conn()
	defer func() { _ = again.Close() }()
	for db := range 16 {
		if err := again.Select(ctx, db).Err(); err != nil {
			t.Fatal(err)
		}
		if v, err := again.Get(ctx, "k").Int(); err != nil || v != db {
			t.Errorf("database %d holds %d, %v", db, v, err)
		}
	}
}

// A key's time to live goes on while the broker is down, for keys and for fields of hashes.
func TestExpiryGoesOnWhileDown(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	first := start(t, embedded.Options{Dir: dir})
	c := first.client(t)
	const short = time.Second
	for _, err := range []error{
		c.Set(ctx, "short", "v", short).Err(),
		c.Set(ctx, "long", "v", time.Hour).Err(),
		c.HSet(ctx, "hash", "short", "v", "long", "v").Err(),
		c.HExpire(ctx, "hash", short, "short").Err(),
		c.HExpire(ctx, "hash", time.Hour, "long").Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ends := time.Now().Add(short)
	if n := must[int64](t)(c.Exists(ctx, "short", "long", "hash").Result()); n != 3 {
		t.Fatalf("%d of 3 keys exist before the stop", n)
	}
	first.stop(t)
	<-time.After(time.Until(ends))

	c = start(t, embedded.Options{Dir: dir}).client(t)
	if n := must[int64](t)(c.Exists(ctx, "short").Result()); n != 0 {
		t.Error("the short key is still there")
	}
	if left := must[time.Duration](t)(c.TTL(ctx, "long").Result()); left < 59*time.Minute || left > time.Hour {
		t.Errorf("the long key has %v left", left)
	}
	if h := must[map[string]string](t)(c.HGetAll(ctx, "hash").Result()); len(h) != 1 || h["long"] != "v" {
		t.Errorf("the hash is %v", h)
	}
	if left := must[[]int64](t)(c.HTTL(ctx, "hash", "long").Result()); left[0] < 3500 || left[0] > 3600 {
		t.Errorf("the field has %v seconds left", left)
	}
}

// A key ends by itself while the broker runs, and not before its time.
func TestKeysExpire(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := start(t, embedded.Options{Dir: t.TempDir()}).client(t)
	begun := time.Now()
	c.Set(ctx, "k", "v", 500*time.Millisecond)
	until(t, "the key ends", func() bool { return c.Exists(ctx, "k").Val() == 0 })
	if took := time.Since(begun); took < 350*time.Millisecond {
		t.Errorf("a key of 500 ms ended after %v", took)
	}
}

// The clock follows forward jumps of the wall clock, as Redis does, and lets keys keep their
// time when it is set back.
func TestClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		mono, wall time.Duration
		aged       time.Duration
		set        bool
	}{
		{"both agree", time.Second, time.Second, time.Second, false},
		{"fractions of a millisecond wait", 1900 * time.Microsecond, 1900 * time.Microsecond, time.Millisecond, false},
		{"the machine slept", 100 * time.Millisecond, time.Hour, time.Hour, false},
		{"a small correction back", 100 * time.Millisecond, -50 * time.Millisecond, 0, false},
		{"set back", 100 * time.Millisecond, -time.Hour, 100 * time.Millisecond, true},
	} {
		if aged, set := embedded.Age(c.mono, c.wall); aged != c.aged || set != c.set {
			t.Errorf("%s: aged %v, set %v; want %v, %v", c.name, aged, set, c.aged, c.set)
		}
	}
}
