package orchestrator

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/drover-jobs/drover/protocol/broker"
)

const (
	maxPasswordSize  = 4096
	addressesAllowed = broker.Allowed
)

var replicasAllowed = fmt.Sprintf("0 to %d", broker.MaxWaitReplicas) //nolint:gochecknoglobals // never written

func (k *checker) redis() {
	r := k.c.Redis
	if r.Embedded {
		for _, f := range []struct{ key, value string }{
			{"address", r.Address}, {"username", r.Username}, {"password_file", r.PasswordFile},
			{"sentinel_username", r.SentinelUsername}, {"sentinel_password_file", r.SentinelPasswordFile},
		} {
			if f.value != "" {
				k.add("redis."+f.key, "", "is for a Redis at an address, but redis.embedded is true; keep one of them", "")
			}
		}
		if r.WaitReplicas > 0 {
			k.add("redis.wait_replicas", fmt.Sprint(r.WaitReplicas), "is for a Redis with replicas, but redis.embedded is true; keep one of them", "")
		}
		return
	}
	if r.Address == "" {
		k.add("redis", "", "does not say where Redis is", "embedded: true, or address: "+addressesAllowed)
		return
	}
	if reason := addressFault(r.Address); reason != "" {
		k.add("redis.address", withoutPassword(r.Address), reason, addressesAllowed)
	}
	if r.Username != "" && r.PasswordFile == "" {
		k.add("redis.username", r.Username, "has no password; name its file with redis.password_file", "")
	}
	if r.SentinelUsername != "" && r.SentinelPasswordFile == "" {
		k.add("redis.sentinel_username", r.SentinelUsername, "has no password; name its file with redis.sentinel_password_file", "")
	}
	if r.SentinelPasswordFile != "" && !strings.Contains(r.Address, "-sentinel://") {
		k.add("redis.sentinel_password_file", r.SentinelPasswordFile, "is for sentinels, but redis.address names none", "redis-sentinel://HOST1:26379,HOST2:26379/0?master=NAME")
	}
	if r.WaitReplicas < 0 || r.WaitReplicas > broker.MaxWaitReplicas {
		k.add("redis.wait_replicas", fmt.Sprint(r.WaitReplicas), "is out of range", replicasAllowed)
	}
}

// addressFault says what is wrong with the address; empty when nothing is.
func addressFault(address string) string {
	if several(address) {
		return severalFault(address)
	}
	u, err := url.Parse(address)
	if err != nil {
		return "is not an address"
	}
	var database string
	switch {
	case u.User != nil:
		return "holds a user or password; use redis.username and redis.password_file"
	case u.Scheme == "redis" || u.Scheme == "rediss":
		if u.Hostname() == "" {
			return "names no host"
		}
		if u.RawQuery != "" {
			return "has a query (?...), which is not read"
		}
		database = strings.TrimPrefix(u.Path, "/")
		if port := u.Port(); port != "" {
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				return "has a port that is not one of 1 to 65535"
			}
		}
	case u.Scheme == "unix":
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			return "names no absolute path; write unix:// and then the path from the root"
		}
		query, err := url.ParseQuery(u.RawQuery)
		if err != nil || len(query) > 1 || (len(query) == 1 && len(query["db"]) != 1) {
			return "has a query (?...) other than db"
		}
		database = query.Get("db")
	default:
		return "begins with no known scheme"
	}
	if database != "" {
		if _, err := strconv.ParseUint(database, 10, 16); err != nil {
			return "has a database that is not a number"
		}
	}
	return ""
}

// replicaCount reads a number of replicas; redis says whether it is one that is allowed.
func replicaCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, errors.New("is not a number")
	}
	return n, nil
}

// several reports whether an address may name several hosts.
func several(address string) bool {
	scheme, _, _ := strings.Cut(address, "://")
	return strings.HasSuffix(scheme, "-sentinel") || strings.HasSuffix(scheme, "-cluster")
}

// severalFault says what is wrong with such an address; empty when nothing is.
func severalFault(address string) string {
	switch {
	case strings.Contains(address, "@"):
		return "holds a user or password; use redis.username and redis.password_file"
	case strings.Contains(address, "sentinel_"):
		return "holds the user or password of the sentinels; use redis.sentinel_username and redis.sentinel_password_file"
	case strings.Contains(address, "wait_replicas"):
		return "has the parameter wait_replicas; use the key redis.wait_replicas"
	}
	if _, err := broker.Parse(address); err != nil {
		return err.Error()
	}
	return ""
}

// withoutPassword is what of an address may be shown; empty when that cannot be known.
func withoutPassword(address string) string {
	if several(address) {
		if strings.Contains(address, "@") || strings.Contains(address, "pass") {
			return ""
		}
		return address
	}
	if u, err := url.Parse(address); err != nil || u.User != nil || strings.Contains(address, "@") {
		return ""
	}
	return address
}

// Password reads the password file; empty when none is named. The error says what to do when the file is missing, empty or
// readable by everybody. One line end at its end does not belong to the password.
func (r RedisConfig) Password() (string, error) {
	return passwordIn("redis.password_file", r.PasswordFile)
}

// SentinelPassword reads that of the sentinels, as Password does.
func (r RedisConfig) SentinelPassword() (string, error) {
	return passwordIn("redis.sentinel_password_file", r.SentinelPasswordFile)
}

func passwordIn(key, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.Open(path) //nolint:gosec // The path is the operator's own.
	if err != nil {
		return "", fmt.Errorf("read %s: %w", key, err)
	}
	data, err := readSecret(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("read %s %s: %w", key, path, err)
	}
	return data, nil
}

func readSecret(f *os.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is not a plain file")
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return "", fmt.Errorf("everybody may read or change it (mode %04o); run chmod 0600", mode)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxPasswordSize+1))
	if err != nil {
		return "", err
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	switch {
	case text == "":
		return "", errors.New("it is empty; write the password into it")
	case len(data) > maxPasswordSize:
		return "", fmt.Errorf("it is larger than %d bytes", maxPasswordSize)
	case strings.ContainsAny(text, "\r\n"):
		return "", errors.New("it has more than one line; write only the password into it")
	}
	return text, nil
}
