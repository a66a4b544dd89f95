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

type (
	peerKey   struct{}
	callerKey struct{}
)

// withPeer puts into a connection's context who is at its other end, as the kernel knows it.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	on, ok := conn.(*unixGuest)
	if !ok {
		return ctx
	}
	uid, pid, err := peerOf(on.unix)
	if err != nil {
		return ctx
	}
	return known(ctx, fmt.Sprintf("uid %d, pid %d", uid, pid), fmt.Sprintf("process %d of user %d", pid, uid))
}

// known puts into a context who makes a call, and which caller that is to the limits.
func known(ctx context.Context, peer, caller string) context.Context {
	return context.WithValue(context.WithValue(ctx, peerKey{}, peer), callerKey{}, caller)
}

// callerOf is the caller to whom a call counts.
func callerOf(ctx context.Context) string {
	caller, _ := ctx.Value(callerKey{}).(string)
	return caller
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
