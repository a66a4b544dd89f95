package api_test

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	"github.com/drover-jobs/drover/protocol/client"
)

// knockAt is the variable that makes the test's program knock at a socket instead of testing.
const knockAt = "KNOCK_AT"

// knock says what the manager answers to two calls on a socket.
func knock(socket string) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	for _, procedure := range []string{"TaskService/Get", "ControlService/Status"} {
		body := strings.NewReader(`{"id":"misbehave:nothing"}`)
		if procedure != "TaskService/Get" {
			body = strings.NewReader("{}")
		}
		answer, err := (&http.Client{Transport: transport}).Post("http://x/drover.api.v1."+procedure, "application/json", body)
		if err != nil {
			fmt.Println("closed")
			continue
		}
		_ = answer.Body.Close()
		fmt.Println(answer.StatusCode)
	}
}

// ownProgram copies the test's program to where everybody may run it.
func ownProgram(t *testing.T, dir string) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path) //nolint:gosec // it is this program
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "knock")
	if err := os.WriteFile(copied, data, 0o755); err != nil { //nolint:gosec // others are to run it
		t.Fatal(err)
	}
	return copied
}

// A socket that was lent to another user lets that user submit and follow tasks, and do nothing else; a third user stays outside, and
// the file goes with the server.
func TestLentSocket(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may give a file to another user")
	}
	const friend, stranger = 65534, 65533
	w := newWorld(t)
	if err := os.Chmod(filepath.Dir(w.socket), 0o711); err != nil { //nolint:gosec // others must get to the socket
		t.Fatal(err)
	}
	s, lent := w.server(0), filepath.Join(filepath.Dir(w.socket), "lent.sock")
	if err := s.Lend(lent, friend); err != nil {
		t.Fatal(err)
	}
	stop := serve(t, s)
	info, err := os.Lstat(lent)
	if err != nil || info.Mode() != fs.ModeSocket|0o600 || info.Sys().(*syscall.Stat_t).Uid != friend {
		t.Errorf("the socket is %v, %v", info, err)
	}
	program := ownProgram(t, filepath.Dir(lent))
	for uid, want := range map[uint32]string{friend: "404 403", stranger: "closed closed"} {
		visit := exec.CommandContext(t.Context(), program) //nolint:gosec // it is this program
		visit.Dir, visit.Env = "/", []string{knockAt + "=" + lent}
		visit.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := visit.CombinedOutput()
		if got := strings.Join(strings.Split(strings.TrimSpace(string(out)), "\n"), " "); err != nil || got != want {
			t.Errorf("user %d got %q, %v; want %q", uid, got, err, want)
		}
	}
	c := dial(t, lent)
	if submitted, err := c.Submit(t.Context(), "misbehave", map[string]string{"do": "return"}); err != nil {
		t.Errorf("submit: %v", err)
	} else if _, err := client.Wait(t.Context(), c, submitted.ID); err != nil {
		t.Errorf("wait: %v, %s", err, connect.CodeOf(err))
	}
	stop()
	if _, err := os.Lstat(lent); !os.IsNotExist(err) {
		t.Errorf("after the end the socket is there: %v", err)
	}
}
