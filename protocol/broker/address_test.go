package broker_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/protocol/broker"
)

// Every form of an address is read as it is documented: hosts with their default ports, credentials unescaped, the database, TLS.
func TestParse(t *testing.T) {
	t.Parallel()
	o, err := broker.Parse("redis-sentinel://u:p%40ss@a,b:1,[::1]:2/3?master=m&sentinel_username=su&sentinel_password=s%26p&wait_replicas=2")
	if err != nil {
		t.Fatal(err)
	}
	s := o.Sentinel
	if s == nil || o.Single != nil || o.Cluster != nil || o.WaitReplicas != 2 || s.MasterName != "m" || s.DB != 3 || s.TLSConfig != nil ||
		s.Username != "u" || s.Password != "p@ss" || s.SentinelUsername != "su" || s.SentinelPassword != "s&p" ||
		!reflect.DeepEqual(s.SentinelAddrs, []string{"a:26379", "b:1", "[::1]:2"}) {
		t.Errorf("sentinel: %+v, %+v", o, s)
	}
	o, err = broker.Parse("rediss-cluster://:pw@a,b:1")
	if err != nil {
		t.Fatal(err)
	}
	c := o.Cluster
	if c == nil || o.Single != nil || o.Sentinel != nil || c.Username != "" || c.Password != "pw" || c.TLSConfig == nil || !reflect.DeepEqual(c.Addrs, []string{"a:6379", "b:1"}) {
		t.Errorf("cluster: %+v, %+v", o, c)
	}
	o, err = broker.Parse("redis://:pw@h:1/2?wait_replicas=1&read_timeout=7s")
	if err != nil {
		t.Fatal(err)
	}
	if r := o.Single; r == nil || o.WaitReplicas != 1 || r.Addr != "h:1" || r.DB != 2 || r.Password != "pw" || r.ReadTimeout.Seconds() != 7 {
		t.Errorf("single: %+v, %+v", o, r)
	}
	o, err = broker.Parse("unix://:p%2Fw@/run/r.sock?db=4")
	if err != nil {
		t.Fatal(err)
	}
	if r := o.Single; r.Network != "unix" || r.Addr != "/run/r.sock" || r.DB != 4 || r.Password != "p/w" {
		t.Errorf("socket: %+v", r)
	}
	o.SetCredentials("", "other")
	if o.Single.Password != "other" || o.Single.Username != "" {
		t.Errorf("credentials: %+v", o.Single)
	}
}

// What is no address is refused, in words that never repeat the password.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"":                                                  "no known scheme",
		"h:1":                                               "no known scheme",
		"http://:hunter2@h":                                 "no known scheme",
		"redis://:hunter2@h/x":                              "not understood",
		"redis://:hunter2%@h":                               "user or password",
		"redis-cluster://:hunter2%@h":                       "user or password",
		"redis-sentinel://:hunter2@a,b":                     "which primary",
		"redis-sentinel://a?master=m&m=1":                   `the parameter "m"`,
		"redis-sentinel://a?master=m&master=n":              "more than once",
		"redis-sentinel://a/0/1?master=m":                   "database",
		"redis-sentinel://a:hunter2,b?master=m":             "port",
		"redis-sentinel://?master=m":                        "without a name",
		"redis-cluster://a,,b":                              "without a name",
		"redis-cluster://a,a:6379":                          "twice",
		"redis-cluster://a:0":                               "port",
		"redis-cluster://::1":                               "port",
		"redis-cluster://a/1":                               "only one",
		"redis-cluster://a?wait_replicas=-1":                "wait_replicas",
		"redis-cluster://a?wait_replicas=99":                "wait_replicas",
		"redis-cluster://a?wait_replicas=1&wait_replicas=1": "wait_replicas",
		"redis-cluster://a?%zz":                             "query",
		"redis-cluster://a#x":                               "not an address",
	} {
		_, err := broker.Parse(address)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}

// Whatever is written, reading it does not panic, and what is taken has a place to connect to.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"redis://h", "redis-sentinel://u:p@a,b:1/3?master=m", "redis-cluster://[::1]:2,a", "unix:///x?db=1", "redis-cluster://@", "rediss-sentinel://[?master"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		o, err := broker.Parse(address)
		if err != nil {
			return
		}
		switch {
		case o.Sentinel != nil && (len(o.Sentinel.SentinelAddrs) == 0 || o.Sentinel.MasterName == ""),
			o.Cluster != nil && len(o.Cluster.Addrs) == 0,
			o.Sentinel == nil && o.Cluster == nil && o.Single == nil:
			t.Errorf("%q: %+v", address, o)
		}
	})
}
