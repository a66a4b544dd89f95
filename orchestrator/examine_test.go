package orchestrator_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// found asks a manager to examine what it stands on, by check.
func found(t *testing.T, m *manager) map[string]*apiv1.Finding {
	t.Helper()
	answer, err := m.control(t).Examine(t.Context(), &apiv1.ExamineRequest{})
	if err != nil {
		t.Fatal(err)
	}
	findings := map[string]*apiv1.Finding{}
	for _, f := range answer.GetFindings() {
		findings[f.GetCheck()] = f
		if bad := f.GetVerdict() != "ok" && f.GetVerdict() != "unknown"; f.GetFound() == "" || bad != (f.GetAdvice() != "") {
			t.Errorf("a finding without a find, or with advice for no reason or none for one: %+v", f)
		}
	}
	return findings
}

// What would lose tasks or stop the manager is found, with what to do about it; what is sound is called so.
func TestExamine(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		m := setUp(t, "{embedded: true}", "", "memory_max: 100MiB").start()
		for check, f := range found(t, m) {
			if want := "ok"; f.GetVerdict() != want && check != "disk" && check != "memory" {
				t.Errorf("%s is %s: %s", check, f.GetVerdict(), f.GetFound())
			}
		}
	})
	t.Run("unsound Redis", func(t *testing.T) {
		t.Parallel()
		r := testenv.StartRedis(t, testenv.RedisOptions{Config: []string{"maxmemory 64mb", "maxmemory-policy allkeys-lru"}})
		m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 1000, memory_max: 1024GiB").start()
		findings := found(t, m)
		for check, want := range map[string]string{
			"Redis version": "ok", "Redis eviction": "bad", "Redis persistence": "warning", "Redis memory": "ok", "managers": "ok", "clocks": "ok",
			"locks": "ok", "memory": "warning", "open files": "ok", "socket paths": "ok",
		} {
			if f := findings[check]; f.GetVerdict() != want && (check != "open files" || f.GetVerdict() == "") {
				t.Errorf("%s is %q: %s", check, f.GetVerdict(), f.GetFound())
			}
		}
		if f := findings["Redis replicas"]; f.GetVerdict() != "ok" {
			t.Errorf("a Redis alone needs no replicas: %+v", f)
		}
		r.Freeze()
		began := time.Now()
		findings = found(t, m)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("with a frozen Redis it took %s", took)
		}
		r.Thaw()
		if f := findings["Redis"]; f.GetVerdict() != "bad" || findings["locks"].GetVerdict() != "bad" || findings["managers"].GetVerdict() != "unknown" {
			t.Errorf("with a frozen Redis: %+v", findings)
		}
	})
}

// Tasks that wait in a queue which no manager serves are found: nothing else would ever say why they do not run.
func TestExamineQueuesThatNobodyServes(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "").start()
	if f := found(t, m)["queues"]; f.GetVerdict() != "ok" {
		t.Errorf("before: %+v", f)
	}
	foreign := asynq.NewClient(asynq.RedisClientOpt{Addr: r.Addr()})
	defer func() { _ = foreign.Close() }()
	for _, queue := range []string{"misbehave", "forgotten"} {
		if _, err := foreign.EnqueueContext(t.Context(), asynq.NewTask("misbehave", []byte(`{"do":"return"}`)), asynq.Queue(queue), asynq.ProcessIn(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if f := found(t, m)["queues"]; f.GetVerdict() != "warning" || !strings.HasSuffix(f.GetFound(), ": forgotten (1)") {
		t.Errorf("it is %q: %s", f.GetVerdict(), f.GetFound())
	}
}

// A Redis with replicas is looked at as a whole: every primary of a Cluster, the sentinels, and whether there are the replicas that a submit
// waits for.
func TestExamineReplicas(t *testing.T) {
	t.Parallel()
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		s := testenv.StartSentinel(t, testenv.SentinelOptions{})
		m := setUp(t, fmt.Sprintf("{address: %q, wait_replicas: 2}", s.URL()), "", "").start()
		findings := found(t, m)
		if f := findings["Redis Sentinel"]; f.GetVerdict() != "ok" {
			t.Errorf("%+v", f)
		}
		if f := findings["Redis replicas"]; f.GetVerdict() != "ok" {
			t.Errorf("%+v", f)
		}
		for _, n := range s.Nodes() {
			if n != s.Primary() {
				n.Kill()
			}
		}
		eventually(t, "the replicas are missed", func() error {
			if f := found(t, m)["Redis replicas"]; f.GetVerdict() != "bad" || !strings.Contains(f.GetFound(), "wait_replicas is 2") {
				return fmt.Errorf("%+v", f)
			}
			return nil
		})
		s.FreezeSentinels()
		if f := found(t, m)["Redis Sentinel"]; f.GetVerdict() != "bad" {
			t.Errorf("with frozen sentinels: %+v", f)
		}
		s.ThawSentinels()
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := testenv.StartCluster(t, testenv.ClusterOptions{})
		m := setUp(t, fmt.Sprintf("{address: %q}", c.URL()), "", "").start()
		findings := found(t, m)
		if f := findings["Redis Cluster"]; f.GetVerdict() != "ok" || !strings.Contains(f.GetFound(), "3 primaries") {
			t.Errorf("%+v", f)
		}
		if f := findings["Redis replicas"]; f.GetVerdict() != "ok" {
			t.Errorf("%+v", f)
		}
		c.Replica("any").Kill()
		eventually(t, "the replica is missed", func() error {
			if f := found(t, m)["Redis replicas"]; f.GetVerdict() != "warning" {
				return fmt.Errorf("%+v", f)
			}
			return nil
		})
		c.Primary("any").Kill()
		eventually(t, "the slots are missed", func() error {
			findings := found(t, m)
			if findings["Redis"].GetVerdict() != "bad" && findings["Redis Cluster"].GetVerdict() != "bad" {
				return fmt.Errorf("%+v", findings)
			}
			return nil
		})
	})
}

// Managers that share a Redis are listed by each of them, with what they do.
func TestManagersAreListed(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	address := fmt.Sprintf("{address: %q}", r.URL())
	first, second := setUp(t, address, "", "").start(), setUp(t, address, "", "")
	text, err := os.ReadFile(second.config)
	if err != nil {
		t.Fatal(err)
	}
	second.rewrite(strings.Replace(string(text), "name: test", "name: other", 1))
	second.start()
	eventually(t, "both are listed", func() error {
		answer, err := first.control(t).Managers(t.Context(), &apiv1.ManagersRequest{})
		if err != nil {
			return err
		}
		if all := answer.GetManagers(); len(all) != 2 || all[0].GetName() != "other" || all[0].GetOwn() || !all[1].GetOwn() ||
			all[0].GetState() != "running" || len(all[0].GetQueues()) != 2 || all[0].GetPid() == 0 {
			return fmt.Errorf("the managers are %v", all)
		}
		return nil
	})
}

// A manager shows its metrics, and is ready while Redis answers; both on its own socket.
func TestMetricsAndReadiness(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "").start()
	c := m.connect(t)
	submitted, err := c.Submit(t.Context(), "misbehave", map[string]any{"do": "return", "value": 1})
	if err == nil {
		_, err = client.Wait(t.Context(), c, submitted.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", m.socket())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	get := func(path string) (int, string) {
		t.Helper()
		answer, err := (&http.Client{Transport: transport}).Get("http://drover" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	code, text := get("/metrics")
	for _, line := range []string{
		"drover_broker_up 1\n", `drover_runs_total{end="completed",queue="misbehave"} 1` + "\n", `drover_task_run_seconds_count{queue="misbehave"} 1` + "\n", "drover_lock_store_up 1\n",
	} {
		if code != http.StatusOK || !strings.Contains(text, line) {
			t.Errorf("%d, without %q", code, line)
		}
	}
	if code, text := get("/readyz"); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	r.Kill()
	eventually(t, "it is not ready", func() error {
		if code, text := get("/readyz"); code != http.StatusServiceUnavailable {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("it does not live: %d", code)
	}
	r.Start()
	eventually(t, "it is ready again", func() error {
		if code, text := get("/readyz"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
}
