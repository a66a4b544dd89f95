package testenv_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/testenv"
)

// ask sends inline commands to a server and returns the first line that starts with one of the given marks.
func ask(t *testing.T, network, addr, commands string, marks ...string) (string, error) {
	t.Helper()
	conn, err := net.DialTimeout(network, addr, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", commands); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		for _, mark := range marks {
			if strings.HasPrefix(lines.Text(), mark) {
				return lines.Text(), nil
			}
		}
	}
	return "", fmt.Errorf("no answer to %q: %w", commands, lines.Err())
}

func mustAsk(t *testing.T, network, addr, commands, want string) {
	t.Helper()
	got, err := ask(t, network, addr, commands, "+", "-", want)
	if err != nil || got != want {
		t.Fatalf("%q was answered with %q, %v; want %q", commands, got, err, want)
	}
}

// Every way to ask for a Redis gives one that answers, keeps its address over kill -9 and start, and is gone
// with its directory when the test ends.
func TestRedis(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		options testenv.RedisOptions
		network string
		kept    bool // whether a key outlives kill -9
	}{
		{name: "port", network: "tcp"},
		{name: "port, durable", options: testenv.RedisOptions{AppendOnly: true}, network: "tcp", kept: true},
		{name: "socket", options: testenv.RedisOptions{UnixSocket: true}, network: "unix"},
		{
			name:    "socket, durable, password",
			options: testenv.RedisOptions{UnixSocket: true, AppendOnly: true, Password: "s3cret"}, network: "unix", kept: true,
		},
		{
			name:    "port, password, own lines",
			options: testenv.RedisOptions{Password: "s3cret", Config: []string{"maxmemory 8mb"}}, network: "tcp",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var pid int
			var dir string
			t.Run("life", func(t *testing.T) {
				r := testenv.StartRedis(t, test.options)
				dir = r.Dir()
				if r.Network() != test.network {
					t.Errorf("network is %s, want %s", r.Network(), test.network)
				}
				checkPassword(t, r)
				auth := ""
				if r.Password() != "" {
					auth = "AUTH " + r.Password() + "\r\n"
				}
				if _, err := ask(t, r.Network(), r.Addr(), auth+"SET k v\r\nGET k", "v"); err != nil {
					t.Fatal(err)
				}
				addr := r.Addr()
				r.Kill()
				if r.PID() != 0 {
					t.Error("a killed server still has a PID")
				}
				r.Start()
				if r.Addr() != addr {
					t.Errorf("the address changed from %s to %s", addr, r.Addr())
				}
				got, err := ask(t, r.Network(), r.Addr(), auth+"GET k", "v", "$-1", "-")
				if err != nil || (got == "v") != test.kept {
					t.Errorf("after kill -9 the key is %q, %v; kept should be %t", got, err, test.kept)
				}
				r.Stop()
				r.Start()
				pid = r.PID()
			})
			if err := syscall.Kill(pid, 0); err == nil {
				t.Errorf("process %d outlived its test", pid)
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("directory %s outlived its test: %v", dir, err)
			}
		})
	}
}

func checkPassword(t *testing.T, r *testenv.Redis) {
	t.Helper()
	if r.Password() == "" {
		mustAsk(t, r.Network(), r.Addr(), "PING", "+PONG")
		return
	}
	got, err := ask(t, r.Network(), r.Addr(), "PING", "+", "-")
	if err != nil || !strings.HasPrefix(got, "-NOAUTH") {
		t.Errorf("without the password PING was answered with %q, %v", got, err)
	}
	if !strings.Contains(r.URL(), ":"+r.Password()+"@") {
		t.Errorf("the URL %s lacks the password", r.URL())
	}
}

// A frozen Redis takes connections and answers nothing, and goes on where it was when thawed.
func TestRedisFreeze(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	mustAsk(t, r.Network(), r.Addr(), "SET k v", "+OK")
	r.Freeze()
	if got, err := ask(t, r.Network(), r.Addr(), "PING", "+"); err == nil {
		t.Errorf("a frozen server answered %q", got)
	}
	r.Thaw()
	mustAsk(t, r.Network(), r.Addr(), "PING", "+PONG")
	r.Freeze() // the end of the test must get rid of a frozen one as well
}

// The server outlives the goroutine and the thread that asked for it.
func TestRedisOutlivesItsThread(t *testing.T) {
	t.Parallel()
	started := make(chan *testenv.Redis)
	go func() {
		defer close(started)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		started <- testenv.StartRedis(t, testenv.RedisOptions{})
	}()
	r := <-started
	<-started
	for range 50 {
		mustAsk(t, r.Network(), r.Addr(), "PING", "+PONG")
	}
}

// Many servers that start at once all get a port of their own.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	for range 8 {
		t.Run("redis", func(t *testing.T) {
			t.Parallel()
			r := testenv.StartRedis(t, testenv.RedisOptions{})
			want := fmt.Sprintf("process_id:%d", r.PID())
			mustAsk(t, r.Network(), r.Addr(), "INFO server", want)
		})
		t.Run("memcached", func(t *testing.T) {
			t.Parallel()
			m := testenv.StartMemcached(t)
			mustAsk(t, "tcp", m.Addr(), "stats", fmt.Sprintf("STAT pid %d", m.PID()))
		})
	}
}
