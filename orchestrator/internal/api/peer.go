package api

import (
	"context"
	"fmt"
	"net"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWho bounds the name that a caller gives, in bytes.
const maxWho = 80

type peerKey struct{}

// withPeer puts into a connection's context who is at its other end, as the kernel knows it.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return ctx
	}
	uid, pid, err := peerOf(unix)
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, fmt.Sprintf("uid %d, pid %d", uid, pid))
}

// who says who asks, for the log: the name that the caller gives, which anybody may give, and what the kernel knows.
func who(ctx context.Context, name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, name)
	if len(name) > maxWho {
		name = strings.ToValidUTF8(name[:maxWho], "")
	}
	name = strings.TrimSpace(name)
	peer, _ := ctx.Value(peerKey{}).(string)
	switch {
	case name == "" && peer == "":
		return "somebody"
	case name == "":
		return peer
	case peer == "":
		return name
	default:
		return name + " (" + peer + ")"
	}
}

// Caller says who makes a call, as the kernel knows it, for the log.
func Caller(ctx context.Context) string { return who(ctx, "") }
