package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/embedded"
)

// Whatever bytes stand in a snapshot file, reading it ends with content or with an error that
// says damaged or newer: no panic, and no more memory than a few times the file.
func FuzzSnapshot(f *testing.F) {
	body := sample(f)
	f.Add(embedded.File(body, time.Now()))
	f.Add(body)
	f.Add(body[:len(body)/2])
	f.Add([]byte("DROVERSN"))
	f.Add([]byte("s\x00\x01k\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x01v"))
	f.Add([]byte("l\x00\x01k\x00\xff\xff\xff\xff\x0f"))
	now := time.Now()
	f.Fuzz(func(t *testing.T, raw []byte) {
		for name, load := range map[string]func([]byte, time.Time) (int, error){"file": embedded.Load, "body": embedded.LoadBody} {
			keys, err := load(raw, now)
			if err != nil && !errors.Is(err, embedded.ErrDamaged()) && !errors.Is(err, embedded.ErrNewerFormat()) {
				t.Errorf("%s: %v", name, err)
			}
			if keys > len(raw) {
				t.Errorf("%s: %d keys in %d bytes", name, keys, len(raw))
			}
		}
	})
}

// sample is a body with all types in it, made by a broker that has stopped.
func sample(f *testing.F) []byte {
	f.Helper()
	b, err := embedded.New(embedded.Options{Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	<-b.Ready()
	c := redis.NewClient(&redis.Options{Addr: b.Address(), Password: b.Password()})
	r := rand.New(rand.NewPCG(1, 1))
	c.Set(ctx, "string", randomText(r), time.Hour)
	c.HSet(ctx, "hash", "a", randomText(r), "b", "c")
	c.HExpire(ctx, "hash", time.Hour, "a")
	c.RPush(ctx, "list", "a", "b", randomText(r))
	c.SAdd(ctx, "set", "a", "b")
	c.ZAdd(ctx, "zset", redis.Z{Score: 1.5, Member: "a"}, redis.Z{Score: -2, Member: "b"})
	c.XAdd(ctx, &redis.XAddArgs{Stream: "stream", ID: "5-1", Values: []string{"a", "b"}})
	body, _, err := b.Snapshot()
	closed := c.Close()
	cancel()
	if err := errors.Join(err, closed, <-done); err != nil {
		f.Fatal(err)
	}
	return body
}

// Whatever a stranger sends, reading it never panics and never lets in who did not send the password.
func FuzzStranger(f *testing.F) {
	const password = "0123456789abcdef"
	f.Add([]byte("*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n"))
	f.Add([]byte("*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$1\r\nx\r\n"))
	f.Add([]byte("*0\r\n"))
	f.Add([]byte("*1\r\n$2000000000\r\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		if embedded.Admitted(sent, password) && !bytes.Contains(sent, []byte(password)) {
			t.Errorf("%q was let in", sent)
		}
	})
}
