package embedded

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// miniredis was written for tests: before it asks for a password it allocates
// whatever length a client announces, and an empty command ends the process.
// Loopback is open to every user of the machine, so until a client has shown
// the password it speaks to the few lines here, and to miniredis only after.
const (
	admitTime     = 10 * time.Second // to show the password
	admitCommands = 16               // tries and other commands before that
	admitFields   = 16               // words of one command
	admitBytes    = 512              // bytes of one word or line
)

const (
	replyNoAuth    = "-NOAUTH Authentication required.\r\n"
	replyWrongPass = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
)

var errNotAdmitted = errors.New("the client did not show the password")

// admit answers a client until it sends the right AUTH or HELLO, and leaves that
// command, with all that came after it, to be read again by miniredis.
func (c *conn) admit(password string) error {
	if err := c.SetReadDeadline(time.Now().Add(admitTime)); err != nil {
		return err
	}
	var seen bytes.Buffer // what the command being read consists of
	in := bufio.NewReaderSize(c.Conn, admitBytes+2)
	for range admitCommands {
		seen.Reset()
		args, err := readCommand(in, &seen)
		if err != nil {
			return err
		}
		secret, tried := credentials(args)
		if tried && sameSecret(secret, password) {
			rest, _ := in.Peek(in.Buffered())
			c.replay = append(seen.Bytes(), rest...)
			return c.SetReadDeadline(time.Time{})
		}
		answer := replyNoAuth
		if tried {
			answer = replyWrongPass
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return err
		}
	}
	return errNotAdmitted
}

// credentials finds the password in AUTH password, AUTH default password and
// HELLO n AUTH default password.
func credentials(args []string) (secret string, tried bool) {
	switch strings.ToUpper(args[0]) {
	case "AUTH":
		switch len(args) {
		case 2:
			return args[1], true
		case 3:
			return userSecret(args[1], args[2]), true
		}
	case "HELLO":
		for i := 2; i+2 < len(args); i++ {
			if strings.EqualFold(args[i], "AUTH") {
				return userSecret(args[i+1], args[i+2]), true
			}
		}
	}
	return "", false
}

// userSecret knows one user. An empty text is never the password.
func userSecret(user, secret string) string {
	if user != "default" {
		return ""
	}
	return secret
}

// readCommand reads one array of bulk strings within the limits and copies the
// bytes it was made of to seen.
func readCommand(in *bufio.Reader, seen *bytes.Buffer) ([]string, error) {
	n, err := readLength(in, seen, '*', admitFields)
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, errors.New("an empty command")
	}
	args := make([]string, 0, n)
	for range n {
		size, err := readLength(in, seen, '$', admitBytes)
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		seen.Write(word)
		args = append(args, string(word[:size]))
	}
	return args, nil
}

func readLength(in *bufio.Reader, seen *bytes.Buffer, mark byte, most int) (int, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	seen.Write(line)
	if len(line) < 4 || line[0] != mark || line[len(line)-2] != '\r' {
		return 0, fmt.Errorf("not a command of the Redis protocol")
	}
	n, err := strconv.Atoi(string(line[1 : len(line)-2]))
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("a length out of range")
	}
	return n, nil
}
