// Package line takes typed lines apart: into commands, and these into words.
//
// It owns the notation of the prompt and of scripts, nothing else: it knows no command. Words are separated by spaces, commands by
// a semicolon or the end of the line, and # begins a comment where a word could begin. 'single' quotes keep all, "double"
// quotes all but \" and \\, and a backslash takes the meaning from the next character. JSON needs no quotes: where a word, or a
// value behind =, begins with { or [, it goes on to the bracket that closes it. The prompt and the scripts call it; it starts
// nothing.
package line

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// Errors of Split.
var (
	errQuote     = errors.New("a quote is not closed")
	errBracket   = errors.New("a { or [ is not closed; put quotes around it if it is no JSON")
	errBackslash = errors.New("a backslash at the end of the line takes the meaning from nothing")
)

// Split returns the commands of a line, each with at least one word. The error says what is not closed.
func Split(text string) ([][]string, error) {
	s := scanner{text: text}
	if err := s.scan(); err != nil {
		return nil, err
	}
	return s.commands, nil
}

// Unfinished returns the words of the last command of a line that is still being typed, the last of them, which may be empty, as
// far as it is there. plain is true when that last word is written as it is meant, without quotes or backslashes, so that it
// can be completed.
func Unfinished(text string) (words []string, plain bool) {
	s := scanner{text: text}
	err := s.scan()
	if err != nil || s.comment {
		return nil, false
	}
	if s.open && len(s.commands) > 0 {
		words = s.commands[len(s.commands)-1]
	}
	if !s.touching {
		return append(words[:len(words):len(words)], ""), true
	}
	return words, strings.HasSuffix(text, words[len(words)-1])
}

// scanner goes over a text once.
type scanner struct {
	text     string
	at       int
	commands [][]string
	open     bool // the last command goes on
	touching bool // the last word reaches the end of the text
	comment  bool // the text ends in a comment
}

func (s *scanner) scan() error {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case isSpace(c):
			s.at++
			s.touching = false
			if c == '\n' {
				s.open = false
			}
		case c == ';':
			s.at++
			s.open, s.touching = false, false
		case c == '#':
			end := strings.IndexByte(s.text[s.at:], '\n')
			if end < 0 {
				s.comment = true
				return nil
			}
			s.at += end
		default:
			word, err := s.word()
			if err != nil {
				return err
			}
			s.add(word)
		}
	}
	return nil
}

func (s *scanner) add(word string) {
	if !s.open {
		s.commands = append(s.commands, nil)
		s.open = true
	}
	last := len(s.commands) - 1
	s.commands[last] = append(s.commands[last], word)
	s.touching = true
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// word reads one word.
func (s *scanner) word() (string, error) {
	var b strings.Builder
	start := true // JSON may begin here
	for s.at < len(s.text) {
		c := s.text[s.at]
		switch {
		case isSpace(c) || c == ';':
			return b.String(), nil
		case start && (c == '{' || c == '['):
			value, err := s.json()
			if err != nil {
				return "", err
			}
			b.WriteString(value)
			start = false
			continue
		case c == '\'' || c == '"':
			text, err := s.quoted(c)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
			start = false
			continue
		case c == '\\':
			if s.at+1 == len(s.text) {
				return "", errBackslash
			}
			_, size := utf8.DecodeRuneInString(s.text[s.at+1:])
			b.WriteString(s.text[s.at+1 : s.at+1+size])
			s.at += 1 + size
			start = false
			continue
		}
		b.WriteByte(c)
		s.at++
		start = c == '='
	}
	return b.String(), nil
}

// quoted reads what stands in quotes.
func (s *scanner) quoted(quote byte) (string, error) {
	var b strings.Builder
	for s.at++; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		switch {
		case c == quote:
			s.at++
			return b.String(), nil
		case c == '\\' && quote == '"' && s.at+1 < len(s.text) && (s.text[s.at+1] == '"' || s.text[s.at+1] == '\\'):
			s.at++
			c = s.text[s.at]
		}
		b.WriteByte(c)
	}
	return "", errQuote
}

// json reads, as it stands, from an opening bracket to the one that closes it.
func (s *scanner) json() (string, error) {
	from, depth, inString := s.at, 0, false
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case inString && c == '\\':
			s.at++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				s.at++
				return s.text[from:s.at], nil
			}
		}
	}
	return "", errBracket
}
