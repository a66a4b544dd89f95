package embedded_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/embedded"
)

// Only who knows the password gets in; it is long, and new with every start.
func TestPassword(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	b := start(t, embedded.Options{Dir: dir})
	if len(b.Password()) != 64 {
		t.Errorf("the password has %d characters, want 64 of hex", len(b.Password()))
	}
	for name, password := range map[string]string{"none": "", "wrong": strings.Repeat("0", 64), "shorter": b.Password()[:63], "longer": b.Password() + "0"} {
		err := connect(t, b.Address(), password).Set(ctx, "k", "v", 0).Err()
		if err == nil || (!strings.Contains(err.Error(), "NOAUTH") && !strings.Contains(err.Error(), "WRONGPASS")) {
			t.Errorf("with the %s password: %v", name, err)
		}
	}
	for _, protocol := range []int{2, 3} {
		for _, user := range []string{"", "default"} {
			c := redis.NewClient(&redis.Options{Addr: b.Address(), Username: user, Password: b.Password(), Protocol: protocol})
			if err := c.Ping(ctx).Err(); err != nil {
				t.Errorf("protocol %d, user %q: %v", protocol, user, err)
			}
			_ = c.Close()
		}
	}
	if err := b.client(t).Do(ctx, "DROVER.HOLD", b.Password()).Err(); err == nil {
		t.Error("a client could call the command that runs under the lock")
	}
	old := b.Password()
	b.stop(t)
	if start(t, embedded.Options{Dir: dir}).Password() == old {
		t.Error("the password is the same after a restart")
	}
}

// Before the password nothing that a stranger sends can end or fill the process.
func TestStrangersCannotHarm(t *testing.T) {
	t.Parallel()
	b := start(t, embedded.Options{Dir: t.TempDir()})
	for name, sent := range map[string]string{
		"empty command":   "*0\r\n",
		"nil command":     "*-1\r\n",
		"huge array":      "*1000000000\r\n",
		"huge word":       "*1\r\n$2000000000\r\n",
		"negative word":   "*1\r\n$-1\r\n",
		"not the format":  "GET / HTTP/1.1\r\n\r\n",
		"endless line":    strings.Repeat("x", 100_000),
		"empty line":      "\r\n",
		"half a command":  "*2\r\n$4\r\nAUTH\r\n",
		"command flood":   strings.Repeat("*1\r\n$4\r\nPING\r\n", 100),
		"password flood":  strings.Repeat("*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n", 100),
		"hello, no value": "*4\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n",
	} {
		c := must[net.Conn](t)(net.Dial("tcp", b.Address()))
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.WriteString(c, sent)
		_ = c.(*net.TCPConn).CloseWrite()
		got, err := io.ReadAll(c)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection was left open", name)
		}
		if strings.Contains(string(got), "+") {
			t.Errorf("%s: answered %q", name, got)
		}
		_ = c.Close()
	}
	if err := b.client(t).Ping(context.Background()).Err(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Other programs of the same user find the broker through redis.json, and only they; after a
// stop it is gone.
func TestAccessFile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	b := start(t, embedded.Options{Dir: dir})
	if err := b.client(t).Set(context.Background(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	var a embedded.Access
	if err := json.Unmarshal(must[[]byte](t)(os.ReadFile(filepath.Join(dir, "redis.json"))), &a); err != nil {
		t.Fatal(err)
	}
	if want := (embedded.Access{Address: b.Address(), Password: b.Password(), PID: os.Getpid()}); a != want {
		t.Errorf("redis.json says %+v, want %+v", a, want)
	}
	if host, _, err := net.SplitHostPort(a.Address); err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("the address %s is not on loopback", a.Address)
	}
	b.stop(t)
	if mode := must[os.FileInfo](t)(os.Stat(dir)).Mode().Perm(); mode != 0o700 {
		t.Errorf("the directory has mode %o", mode)
	}
	var names []string
	for _, e := range must[[]os.DirEntry](t)(os.ReadDir(dir)) {
		names = append(names, e.Name())
		if mode := must[os.FileInfo](t)(e.Info()).Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", e.Name(), mode)
		}
	}
	if got := strings.Join(names, " "); got != "redis.lock redis.snapshot" {
		t.Errorf("after a stop the directory holds %s", got)
	}
}

// A second broker in the same directory is refused with a message that says what to do, and the
// first goes on.
func TestOneBrokerPerDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, embedded.Options{Dir: dir})
	second, err := embedded.New(embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	err = second.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "already runs") {
		t.Errorf("the second broker: %v", err)
	}
	if second.Address() != "" {
		t.Error("the second broker has an address")
	}
	if err := first.client(t).Ping(context.Background()).Err(); err != nil {
		t.Errorf("the first broker: %v", err)
	}
	if err := first.Run(context.Background()); err == nil {
		t.Error("Run could be called twice")
	}
}

// Options that make no sense, and a directory where anybody could plant a queue, are refused.
func TestRefusedOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []embedded.Options{{}, {Dir: "x", SnapshotEvery: -1}} {
		if _, err := embedded.New(o); err == nil {
			t.Errorf("New accepted %+v", o)
		}
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	b := must[*embedded.Broker](t)(embedded.New(embedded.Options{Dir: dir}))
	if err := b.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("a directory open to everybody: %v", err)
	}
}

// What no snapshot could bring back is refused with the reason, inside scripts as well.
func TestRefusesWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := start(t, embedded.Options{Dir: t.TempDir()}).client(t)
	for name, err := range map[string]error{
		"PFADD":     c.PFAdd(ctx, "h", "a").Err(),
		"XGROUP":    c.XGroupCreateMkStream(ctx, "x", "g", "$").Err(),
		"in script": c.Eval(ctx, `return redis.call("PFADD", KEYS[1], "a")`, []string{"h"}).Err(),
		"MOVE":      c.Do(ctx, "MOVE", "k", "16").Err(),
		"SWAPDB":    c.Do(ctx, "SWAPDB", "0", "99").Err(),
		"COPY":      c.Do(ctx, "COPY", "a", "b", "DB", "16").Err(),
	} {
		if err == nil || errors.Is(err, redis.Nil) {
			t.Errorf("%s was served", name)
		}
	}
}

// A client that waits in a blocking command does not hold up the stop.
func TestStopWithBlockedClients(t *testing.T) {
	t.Parallel()
	b := start(t, embedded.Options{Dir: t.TempDir()})
	c := b.client(t)
	ended := make(chan error)
	for range 4 {
		go func() { ended <- c.BLPop(context.Background(), 0, "nothing").Err() }()
	}
	until(t, "the clients are connected", func() bool { return c.PoolStats().TotalConns >= 4 })
	b.stop(t)
	for range 4 {
		if err := <-ended; err == nil {
			t.Error("a blocked client got something")
		}
	}
}

// A subscriber that stops reading is cut, and nobody else waits for it.
func TestSlowSubscriberIsCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := start(t, embedded.Options{Dir: t.TempDir()})
	slow := must[net.Conn](t)(net.Dial("tcp", b.Address()))
	defer func() { _ = slow.Close() }()
	_ = slow.SetDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(slow)
	_, _ = io.WriteString(slow, "*2\r\n$4\r\nAUTH\r\n$64\r\n"+b.Password()+"\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n")
	if line := must[string](t)(in.ReadString('\n')); line != "+OK\r\n" {
		t.Fatalf("AUTH answered %q", line)
	}
	c := b.client(t)
	until(t, "the subscription stands", func() bool { return c.PubSubNumSub(ctx, "c").Val()["c"] == 1 })
	message := strings.Repeat("m", 1<<20)
	var slowest time.Duration
	cut := false
	for range 200 {
		begun := time.Now()
		n, err := c.Publish(ctx, "c", message).Result()
		if err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(begun))
		if n == 0 {
			cut = true
			break
		}
	}
	if !cut {
		t.Error("200 MB later the subscriber is still there")
	}
	if slowest > 5*time.Second {
		t.Errorf("a publish took %v", slowest)
	}
}
