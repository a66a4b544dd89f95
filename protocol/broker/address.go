package broker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Allowed are the forms of an address, for messages to people.
const Allowed = "redis://HOST:6379/0, unix:///run/redis/redis.sock?db=0, redis-sentinel://HOST1:26379,HOST2:26379/0?master=NAME or redis-cluster://HOST1:6379,HOST2:6379; rediss... for TLS"

const (
	redisPort    = "6379"
	sentinelPort = "26379"
	// MaxWaitReplicas bounds for how many replicas a submit may wait.
	MaxWaitReplicas = 16
)

// Options are where Redis is and how it is spoken to. Exactly one of Single, Sentinel and Cluster is there.
type Options struct {
	Single   *redis.Options
	Sentinel *redis.FailoverOptions
	Cluster  *redis.ClusterOptions
	// WaitReplicas is how many replicas must have a task before its submit is answered; 0 waits for none.
	WaitReplicas int
}

// Parse reads an address. The schemes redis, rediss and unix name one server, as go-redis reads them;
// redis-sentinel://USER:PASSWORD@HOST:26379,HOST:26379/DB?master=NAME names the sentinels, with the user and the password of Redis, and
// sentinel_username and sentinel_password among the parameters for the sentinels' own; redis-cluster://USER:PASSWORD@HOST:6379,HOST:6379 some nodes
// of a Cluster. rediss-sentinel and rediss-cluster use TLS. The parameter wait_replicas goes with all of them. No error repeats the
// address, since there may be a password in it.
func Parse(address string) (*Options, error) {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		return nil, errors.New("begins with no known scheme")
	}
	u, err := divide(rest)
	if err != nil {
		return nil, err
	}
	o := &Options{}
	if o.WaitReplicas, err = u.count("wait_replicas", MaxWaitReplicas); err != nil {
		return nil, err
	}
	secure := strings.HasPrefix(scheme, "rediss")
	switch scheme {
	case "redis", "rediss", "unix":
		o.Single, err = redis.ParseURL(u.single(scheme))
		if err != nil {
			err = errors.New("is not understood") // the parser's text repeats the password
		}
	case "redis-sentinel", "rediss-sentinel":
		o.Sentinel, err = u.sentinel(secure)
	case "redis-cluster", "rediss-cluster":
		o.Cluster, err = u.cluster(secure)
	default:
		err = errors.New("begins with no known scheme")
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// SetCredentials sets the user and the password of Redis; empty ones leave what the address says.
func (o *Options) SetCredentials(username, password string) {
	set := func(toName, toPassword *string) {
		if username != "" {
			*toName = username
		}
		if password != "" {
			*toPassword = password
		}
	}
	switch {
	case o.Sentinel != nil:
		set(&o.Sentinel.Username, &o.Sentinel.Password)
	case o.Cluster != nil:
		set(&o.Cluster.Username, &o.Cluster.Password)
	default:
		set(&o.Single.Username, &o.Single.Password)
	}
}

// parts are an address without its scheme. url.Parse takes only one host.
type parts struct {
	user  *url.Userinfo
	hosts string
	path  string
	query url.Values
}

func divide(rest string) (parts, error) {
	var p parts
	at := strings.IndexAny(rest, "/?#")
	if at < 0 {
		at = len(rest)
	}
	p.hosts = rest[:at]
	if i := strings.LastIndexByte(p.hosts, '@'); i >= 0 {
		u, err := url.Parse("redis://" + p.hosts[:i] + "@host")
		if err != nil {
			return parts{}, errors.New("has a user or password that is not understood; write special characters as %XX")
		}
		p.user, p.hosts = u.User, p.hosts[i+1:]
	}
	u, err := url.Parse("redis://host" + rest[at:])
	if err != nil || u.Fragment != "" {
		return parts{}, errors.New("is not an address")
	}
	p.path = u.Path
	if p.query, err = url.ParseQuery(u.RawQuery); err != nil {
		return parts{}, errors.New("has a query (?...) that is not understood")
	}
	return p, nil
}

// count takes a number out of the query; 0 when it is not there.
func (p parts) count(name string, most int) (int, error) {
	values := p.query[name]
	delete(p.query, name)
	if len(values) == 0 {
		return 0, nil
	}
	n, err := strconv.Atoi(values[0])
	if err != nil || len(values) > 1 || n < 0 || n > most {
		return 0, fmt.Errorf("has a %s that is not one number from 0 to %d", name, most)
	}
	return n, nil
}

// single writes the address of one server again.
func (p parts) single(scheme string) string {
	return (&url.URL{Scheme: scheme, User: p.user, Host: p.hosts, Path: p.path, RawQuery: p.query.Encode()}).String()
}

func (p parts) sentinel(secure bool) (*redis.FailoverOptions, error) {
	o := &redis.FailoverOptions{MasterName: p.query.Get("master"), SentinelUsername: p.query.Get("sentinel_username"), SentinelPassword: p.query.Get("sentinel_password")}
	if o.MasterName == "" {
		return nil, errors.New("does not say which primary the sentinels watch; add ?master=NAME, as in their configuration")
	}
	err := p.only("master", "sentinel_username", "sentinel_password")
	if err == nil {
		o.SentinelAddrs, err = p.addresses(sentinelPort)
	}
	if err == nil {
		o.DB, err = p.database()
	}
	if err != nil {
		return nil, err
	}
	o.Username, o.Password = p.credentials()
	o.TLSConfig = tlsConfig(secure)
	return o, nil
}

func (p parts) cluster(secure bool) (*redis.ClusterOptions, error) {
	o := &redis.ClusterOptions{TLSConfig: tlsConfig(secure)}
	err := p.only()
	if err == nil {
		o.Addrs, err = p.addresses(redisPort)
	}
	if err != nil {
		return nil, err
	}
	if db, err := p.database(); err != nil || db != 0 {
		return nil, errors.New("names a database; a Cluster has only one, so leave it out")
	}
	o.Username, o.Password = p.credentials()
	return o, nil
}

// only says which parameter is not known.
func (p parts) only(known ...string) error {
	for name, values := range p.query {
		if !slices.Contains(known, name) {
			return fmt.Errorf("has the parameter %.40q, which is not read here", name)
		}
		if len(values) > 1 {
			return fmt.Errorf("has the parameter %s more than once", name)
		}
	}
	return nil
}

// addresses are the hosts with their ports.
func (p parts) addresses(port string) ([]string, error) {
	var all []string
	for host := range strings.SplitSeq(p.hosts, ",") {
		u := &url.URL{Host: host}
		name := u.Hostname()
		if name == "" || strings.ContainsAny(name, "@ ") {
			return nil, errors.New("has a host without a name; write HOST:PORT,HOST:PORT")
		}
		at := u.Port()
		if at == "" {
			at = port
		}
		if n, err := strconv.ParseUint(at, 10, 16); err != nil || n == 0 || strings.Contains(strings.Trim(name, "[]"), ":") && !strings.HasPrefix(host, "[") {
			return nil, errors.New("has a port that is not one of 1 to 65535")
		}
		address := net.JoinHostPort(name, at)
		if slices.Contains(all, address) {
			return nil, fmt.Errorf("names %.80s twice", address)
		}
		all = append(all, address)
	}
	return all, nil
}

func (p parts) database() (int, error) {
	text := strings.Trim(p.path, "/")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, errors.New("has a database that is not a number")
	}
	return int(n), nil //nolint:gosec // of 16 bits
}

func (p parts) credentials() (username, password string) {
	if p.user == nil {
		return "", ""
	}
	password, _ = p.user.Password()
	return p.user.Username(), password
}

// tlsConfig leaves the name of the server to the dialer, since each node has its own.
func tlsConfig(secure bool) *tls.Config {
	if !secure {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12}
}
