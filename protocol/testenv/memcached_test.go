package testenv_test

import (
	"testing"

	"github.com/drover-jobs/drover/protocol/testenv"
)

// A memcached answers, comes back empty on its address after a kill, and can be frozen and thawed.
func TestMemcached(t *testing.T) {
	t.Parallel()
	m := testenv.StartMemcached(t)
	if _, err := ask(t, "tcp", m.Addr(), "set k 0 0 1\r\nv\r\nget k", "VALUE k"); err != nil {
		t.Fatal(err)
	}
	m.Kill()
	if _, err := ask(t, "tcp", m.Addr(), "get k", "END"); err == nil {
		t.Error("a killed server answered")
	}
	m.Start()
	if got, err := ask(t, "tcp", m.Addr(), "get k", "VALUE", "END"); err != nil || got != "END" {
		t.Errorf("after a restart: %q, %v; want an empty server", got, err)
	}
	m.Freeze()
	if got, err := ask(t, "tcp", m.Addr(), "get k", "END"); err == nil {
		t.Errorf("a frozen server answered %q", got)
	}
	m.Thaw()
	if _, err := ask(t, "tcp", m.Addr(), "get k", "END"); err != nil {
		t.Error(err)
	}
}
