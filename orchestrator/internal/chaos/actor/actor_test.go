package actor_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/actor"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// Redis comes back from kill -9 with everything that it had said yes to, and answers again after a freeze.
func TestRedisComesBack(t *testing.T) {
	t.Parallel()
	server, err := actor.NewRedis(t.Context(), testenv.ShortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: server.Socket()})
	t.Cleanup(func() { _ = rdb.Close() })
	if err := rdb.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for name, strike := range map[string]func(context.Context, time.Duration) error{"kill": server.KillFor, "freeze": server.FreezeFor} {
		began := time.Now()
		if err := strike(t.Context(), 100*time.Millisecond); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if took := time.Since(began); took < 100*time.Millisecond {
			t.Errorf("%s lasted %s", name, took)
		}
		if got, err := rdb.Get(t.Context(), "key").Result(); err != nil || got != "value" {
			t.Errorf("after the %s: %q, %v", name, got, err)
		}
	}
	if !server.Alive() {
		t.Error("it does not live")
	}
}

// What memcached has is listed, by its prefix; what has expired is not.
func TestItems(t *testing.T) {
	t.Parallel()
	server, err := actor.NewMemcached(t.Context(), testenv.ShortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	conn, err := net.Dial("unix", server.Socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	answers := bufio.NewReader(conn)
	for _, command := range []string{"set lock:a 0 0 1\r\nx\r\n", "set lock:b 0 0 1\r\nx\r\n", "set other 0 0 1\r\nx\r\n", "touch lock:b -1\r\n"} {
		if _, err := conn.Write([]byte(command)); err != nil {
			t.Fatal(err)
		}
		if answer, err := answers.ReadString('\n'); err != nil || !slices.Contains([]string{"STORED\r\n", "TOUCHED\r\n"}, answer) {
			t.Fatalf("%q: %q, %v", command, answer, err)
		}
	}
	names, err := server.Items(t.Context(), "lock:")
	if err != nil || !slices.Equal(names, []string{"lock:a"}) {
		t.Errorf("got %q, %v", names, err)
	}
}

// A process is found by its environment and by its program while it lives.
func TestFind(t *testing.T) {
	t.Parallel()
	mark := fmt.Sprintf("CHAOS_TEST=%d.%d", os.Getpid(), time.Now().UnixNano())
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(sleep, "600")
	child.Env = []string{mark}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", child.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	is := func(f actor.Found) bool { return f.PID == child.Process.Pid && f.Parent == os.Getpid() }
	if found := actor.Having(mark); len(found) != 1 || !is(found[0]) || !strings.HasSuffix(found[0].Command, "sleep 600") {
		t.Errorf("by its environment: %+v", found)
	}
	if !slices.ContainsFunc(actor.Running(program), is) {
		t.Error("not found by its program")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if found := actor.Having(mark); len(found) != 0 {
		t.Errorf("after its end: %+v", found)
	}
}
