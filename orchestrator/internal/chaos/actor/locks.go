package actor

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// Items returns the names of the items of a memcached that begin with the prefix and can be read.
func (s *Server) Items(ctx context.Context, prefix string) ([]string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", s.socket)
	if err != nil {
		return nil, fmt.Errorf("list what memcached has: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, fmt.Errorf("list what memcached has: %w", err)
	}
	answers := bufio.NewReader(conn)
	lines, err := ask(conn, answers, "lru_crawler metadump all\r\n")
	if err != nil {
		return nil, fmt.Errorf("list what memcached has: %w", err)
	}
	var names []string
	for _, line := range lines {
		// key=drover%3Alock exp=1 la=2 ...; items that have expired are there until they are collected.
		key, _, _ := strings.Cut(strings.TrimPrefix(line, "key="), " ")
		name, err := url.QueryUnescape(key)
		if err != nil || !strings.HasPrefix(name, prefix) {
			continue
		}
		value, err := ask(conn, answers, "get "+name+"\r\n")
		if err != nil {
			return nil, fmt.Errorf("look at what memcached has: %w", err)
		}
		if len(value) > 0 {
			names = append(names, name)
		}
	}
	return names, nil
}

// ask sends a command and returns the lines of its answer without the last, END.
func ask(conn net.Conn, answers *bufio.Reader, command string) ([]string, error) {
	if _, err := conn.Write([]byte(command)); err != nil {
		return nil, err
	}
	var lines []string
	for {
		line, err := answers.ReadString('\n')
		if err != nil {
			return nil, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "END" {
			return lines, nil
		}
		lines = append(lines, line)
	}
}
