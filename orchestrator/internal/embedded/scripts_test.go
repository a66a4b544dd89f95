package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/embedded"
)

// realRedis starts a redis-server on a Unix socket.
func realRedis(t *testing.T) *redis.Client {
	t.Helper()
	dir := must[string](t)(os.MkdirTemp("", "drv"))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	cmd := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatalf("these tests need a redis-server on the path: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	t.Cleanup(func() { _ = c.Close() })
	until(t, "redis-server answers", func() bool { return c.Ping(context.Background()).Err() == nil })
	return c
}

// script is one script with the keys it works on; each starts on an empty database.
type script struct {
	name, text string
	keys       []string
	args       []any
	differs    string // begin of what the embedded broker answers where it is known to differ
}

func scripts() []script {
	return []script{
		{"list moves", `
			redis.call("RPUSH", KEYS[1], "a", "b", "c", "b")
			local removed = redis.call("LREM", KEYS[1], 1, "b")
			local moved = redis.call("RPOPLPUSH", KEYS[1], KEYS[2])
			local none = redis.call("RPOPLPUSH", KEYS[3], KEYS[2])
			return {removed, moved, none == false, redis.call("LRANGE", KEYS[1], 0, -1), redis.call("LLEN", KEYS[2])}`,
			[]string{"l1", "l2", "l3"}, nil, ""},
		{"sorted sets", `
			redis.call("ZADD", KEYS[1], 3, "c", 1, "a", "1.5", "b")
			local again = redis.call("ZADD", KEYS[1], "XX", 9, "a")
			local gone = redis.call("ZREM", KEYS[1], "c", "x")
			return {again, gone, redis.call("ZSCORE", KEYS[1], "a"), redis.call("ZSCORE", KEYS[1], "x") == false,
				redis.call("ZRANGE", KEYS[1], "-inf", "+inf", "BYSCORE", "LIMIT", 0, 10),
				redis.call("ZRANGE", KEYS[1], "(1.5", "+inf", "BYSCORE"),
				redis.call("ZRANGEBYSCORE", KEYS[1], 0, "+inf", "WITHSCORES")}`,
			[]string{"z"}, nil, ""},
		{"scores of seventeen digits", `
			redis.call("ZADD", KEYS[1], ARGV[1], "a")
			return redis.call("ZSCORE", KEYS[1], "a")`, []string{"z"}, []any{"1764530000.123456"}, ""},
		{"hash fields", `
			local set = redis.call("HSET", KEYS[1], "a", "1", "b", "2")
			local v = redis.call("HMGET", KEYS[1], "a", "x", "b")
			return {set, v[1], v[2] == false, v[2] == nil, v[3], #v,
				redis.call("HGET", KEYS[1], "x") == false, redis.call("HINCRBY", KEYS[1], "a", 5),
				redis.call("HDEL", KEYS[1], "a", "x"), redis.call("HLEN", KEYS[1])}`, []string{"h"}, nil, ""},
		{"a missing hash", `local v = redis.call("HMGET", KEYS[1], "a", "b") return {#v, v[1] == false, v[2] == false}`, []string{"h"}, nil, ""},
		{"all of a hash", `redis.call("HSET", KEYS[1], "a", "1") local v = redis.call("HGETALL", KEYS[1]) return {#v, v[1], v[2]}`, []string{"h"}, nil, ""},
		{"strings with expiry", `
			local ok = redis.call("SET", KEYS[1], "v", "EX", 100)
			local second = redis.call("SET", KEYS[1], "w", "NX", "EX", 100)
			return {ok.ok, second == false, redis.call("TTL", KEYS[1]), redis.call("PTTL", KEYS[2]),
				redis.call("EXPIRE", KEYS[1], 50), redis.call("TTL", KEYS[1]), redis.call("GET", KEYS[2]) == false}`, []string{"s1", "s2"}, nil, ""},
		{"publish", `return redis.call("PUBLISH", KEYS[1], "m")`, []string{"c"}, nil, ""},
		{"JSON", `
			local v = cjson.decode(ARGV[1])
			return {v.s, v.n, v.l[2], tostring(v.b), tostring(v.missing), cjson.encode({1, 2}), cjson.encode("a/b\n")}`,
			nil, []any{`{"s":"x","n":3,"l":[1,2],"b":true}`}, `[]interface {}{"x", 3, 2, "true", "nil", "[1,2]", "\"a/b`},
		{"JSON null", `return tostring(cjson.decode('{"a":null}').a == cjson.null)`, nil, nil, ""},
		{"JSON of nothing", `return cjson.encode({})`, nil, nil, `"[]"`},
		{"JSON numbers", `return {cjson.encode(1.5), cjson.encode(100000000000000), cjson.encode(3)}`, nil, nil, `[]interface {}{"1.5", "100000000000000"`},
		{"numbers to integers", `return {3.99, -3.99, 1e15, tonumber("12"), tostring(12), tostring(1764530000123)}`, nil, nil, ""},
		{"numbers as arguments", `redis.call("SET", KEYS[1], 1764530000123) redis.call("SET", KEYS[2], 1.5) return {redis.call("GET", KEYS[1]), redis.call("GET", KEYS[2])}`, []string{"a", "b"}, nil, ""},
		{"nil ends a table", `return {1, nil, 3}`, nil, nil, ""},
		{"false in a table", `return {1, false, 3}`, nil, nil, ""},
		{"true", `return true`, nil, nil, ""},
		{"status", `return redis.status_reply("FINE")`, nil, nil, ""},
		{"error reply", `return redis.error_reply("TASK gone")`, nil, nil, ""},
		{"error by pcall", `local r = redis.pcall("LPUSH", KEYS[1]) return type(r) == "table" and r.err ~= nil`, []string{"k"}, nil, ""},
		{"wrong type by pcall", `redis.call("SET", KEYS[1], "v") local r = redis.pcall("LPUSH", KEYS[1], "x") return r.err`, []string{"k"}, nil, ""},
		{"TIME", `local t = redis.call("TIME") return {#t, type(t[1]), tonumber(t[1]) > 1700000000}`, nil, nil, ""},
		{"binary", `redis.call("SET", KEYS[1], ARGV[1]) return {redis.call("GET", KEYS[1]), #ARGV[1]}`, []string{"b\x00\xff"}, []any{"\x00\r\n\xff"}, ""},
		{"many arguments", `return redis.call("RPUSH", KEYS[1], unpack(ARGV))`, []string{"l"}, many(1000), ""},
		{"string functions", `return {string.format("%d-%s", 5, "x"), string.sub("hello", 2, 3), string.match("a:b", ":(.*)"), #string.rep("x", 5)}`, nil, nil, ""},
		{"sets", `redis.call("SADD", KEYS[1], "a", "b") return {redis.call("SISMEMBER", KEYS[1], "a"), redis.call("SREM", KEYS[1], "x"), redis.call("SCARD", KEYS[1])}`, []string{"s"}, nil, ""},
		{"copy and exists", `redis.call("SET", KEYS[1], "v") return {redis.call("EXISTS", KEYS[1], KEYS[2]), redis.call("DEL", KEYS[1], KEYS[2]), redis.call("TYPE", KEYS[1]).ok}`, []string{"a", "b"}, nil, ""},
		{"LMOVE and LPOS", `
			redis.call("RPUSH", KEYS[1], "a", "b", "c")
			return {redis.call("LPOS", KEYS[1], "b"), redis.call("LPOS", KEYS[1], "x") == false,
				redis.call("LMOVE", KEYS[1], KEYS[2], "LEFT", "RIGHT"), redis.call("LINDEX", KEYS[1], 0), redis.call("LPOP", KEYS[1], 2)}`, []string{"a", "b"}, nil, ""},
		{"bit library", `return bit.band(6, 3)`, nil, nil, `error: ERR Error compiling script (new function): :16: Script attempted to access nonexistent global variable`},
		{"cmsgpack", `return cmsgpack.unpack(cmsgpack.pack("x"))`, nil, nil, `error: ERR Error compiling script (new function): :16: Script attempted to access nonexistent global variable`},
		{"global variable", `x = 1 return x`, nil, nil, `error: ERR Error compiling script (new function): :9: Script attempted to create global variable`},
		{"ZADD options", `redis.call("ZADD", KEYS[1], 5, "a") return {redis.call("ZADD", KEYS[1], "GT", "CH", 4, "a"), redis.call("ZADD", KEYS[1], "GT", "CH", 6, "a"), redis.call("ZADD", KEYS[1], "NX", 1, "a")}`, []string{"z"}, nil, ""},
		{"ZPOPMIN and ranks", `redis.call("ZADD", KEYS[1], 5, "a", 6, "b") return {redis.call("ZRANK", KEYS[1], "b"), redis.call("ZCARD", KEYS[1]), redis.call("ZCOUNT", KEYS[1], "(5", "inf"), redis.call("ZPOPMIN", KEYS[1])}`, []string{"z"}, nil, ""},
		{"LTRIM", `redis.call("RPUSH", KEYS[1], 1, 2, 3) redis.call("LTRIM", KEYS[1], -2, -1) return redis.call("LRANGE", KEYS[1], 0, -1)`, []string{"l"}, nil, ""},
		{"SET with GET", `redis.call("SET", KEYS[1], "v") return {redis.call("SET", KEYS[1], "w", "GET"), redis.call("SET", KEYS[1], "x", "KEEPTTL").ok}`, []string{"k"}, nil, ""},
		{"error by call", `redis.call("SET", KEYS[1], "v") redis.call("LPUSH", KEYS[1], "x") return 1`, []string{"k"}, nil, "error: ERR Error compiling script (new function): :1: WRONGTYPE Operation"},
		{"an unknown command", `return redis.call("NOSUCHCOMMAND")`, nil, nil, "error: ERR Error compiling script (new function): :1: Unknown Redis command"},
		{"XADD", `return {redis.call("XADD", KEYS[1], "MAXLEN", "~", 10, "5-1", "f", "v"), redis.call("XLEN", KEYS[1])}`, []string{"x"}, nil, ""},
	}
}

func many(n int) (out []any) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

func answer(v any, err error) string {
	if errors.Is(err, redis.Nil) {
		return "nil"
	}
	if err != nil {
		return "error: " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return fmt.Sprintf("%#v", v)
}

// The scripts of asynq and of our own use these commands and Lua functions: each answers as in
// Redis, by EVALSHA, and the few known differences are the ones listed.
func TestScriptsAnswerAsInRedis(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	theirs := realRedis(t)
	ours := start(t, embedded.Options{Dir: t.TempDir(), SnapshotEvery: time.Hour}).client(t)
	run := func(c *redis.Client, s script) string {
		if err := c.FlushAll(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		return answer(redis.NewScript(s.text).Run(ctx, c, s.keys, s.args...).Result())
	}
	for _, s := range scripts() {
		want, got := run(theirs, s), run(ours, s)
		switch {
		case s.differs == "" && got != want:
			t.Errorf("%s:\nredis    %s\nembedded %s", s.name, want, got)
		case s.differs != "" && !strings.HasPrefix(got, s.differs):
			t.Errorf("%s:\nredis    %s\nembedded %s\nlisted   %s", s.name, want, got, s.differs)
		case s.differs != "" && got == want:
			t.Errorf("%s does not differ any more", s.name)
		}
	}
}

// Pipelines answer in order, transactions as a whole, and published messages reach those who
// subscribed to a channel or a pattern, from scripts as well.
func TestPipelinesAndMessages(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := start(t, embedded.Options{Dir: t.TempDir()}).client(t)
	for name, p := range map[string]redis.Pipeliner{"pipeline": c.Pipeline(), "transaction": c.TxPipeline()} {
		var got []*redis.IntCmd
		for range 100 {
			got = append(got, p.Incr(ctx, name))
		}
		if _, err := p.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		for i, cmd := range got {
			if cmd.Val() != int64(i+1) {
				t.Errorf("%s: answer %d is %d", name, i, cmd.Val())
			}
		}
	}
	s := c.Subscribe(ctx, "a")
	defer func() { _ = s.Close() }()
	if err := s.PSubscribe(ctx, "b*"); err != nil {
		t.Fatal(err)
	}
	until(t, "both subscriptions stand", func() bool {
		return c.PubSubNumSub(ctx, "a").Val()["a"] == 1 && c.PubSubNumPat(ctx).Val() == 1
	})
	for i := range 100 {
		if err := c.Eval(ctx, `redis.call("PUBLISH", KEYS[1], ARGV[1]) return redis.call("PUBLISH", KEYS[2], ARGV[1])`, []string{"a", "b1"}, i).Err(); err != nil {
			t.Fatal(err)
		}
	}
	next := map[string]int{}
	for range 200 {
		m := must[*redis.Message](t)(s.ReceiveMessage(ctx))
		if m.Payload != fmt.Sprint(next[m.Channel]) {
			t.Fatalf("channel %s: message %q, want %d", m.Channel, m.Payload, next[m.Channel])
		}
		next[m.Channel]++
	}
}
