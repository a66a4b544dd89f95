package command

import (
	"strconv"
	"strings"
	"time"
)

// Args is what a command line says after the command's name.
type Args struct {
	// Words are those that are no flags, in their order.
	Words []string
	flags map[string]string
}

// Has reports whether a flag was given.
func (a *Args) Has(flag string) bool {
	_, given := a.flags[flag]
	return given
}

// Text is a flag's value; empty when it was not given or has none.
func (a *Args) Text(flag string) string { return a.flags[flag] }

// Duration is a flag's value as a time that is longer than nothing; 0 when the flag or its value was not given. The error is
// a *ExitError of usage.
func (a *Args) Duration(flag string) (time.Duration, error) {
	text := a.flags[flag]
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, usageError("--%s: %q is not a length of time: write it like 500ms, 5s, 10m or 1h30m", flag, text)
	}
	return d, nil
}

// Keep is Duration for a time that may be nothing; given is true when the flag was given.
func (a *Args) Keep(flag string) (d time.Duration, given bool, err error) {
	text := a.flags[flag]
	if n, err := time.ParseDuration(text); err == nil && n == 0 {
		return 0, true, nil
	}
	d, err = a.Duration(flag)
	return d, text != "", err
}

// Number is a flag's value as a whole number from 1 to most; 0 when the flag was not given. The error is one of usage.
func (a *Args) Number(flag string, most int) (int, error) {
	text := a.flags[flag]
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, usageError("--%s: %.40q is not a whole number from 1 to %d", flag, text, most)
	}
	return n, nil
}

// parseArgs takes the words of a command line apart. Flags may stand anywhere; after "--" nothing is a flag.
func parseArgs(own []Flag, words []string) (*Args, error) {
	args := &Args{flags: map[string]string{}}
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--" {
			args.Words = append(args.Words, words[i+1:]...)
			break
		}
		if !looksLikeFlag(word) {
			args.Words = append(args.Words, word)
			continue
		}
		used, err := args.takeFlag(own, words[i:])
		if err != nil {
			return args, err
		}
		i += used - 1
	}
	return args, nil
}

// looksLikeFlag reports whether a word is meant as a flag. A lone "-" stands for standard input.
func looksLikeFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

// takeFlag reads the flag at the head of words and returns how many of them it used.
func (a *Args) takeFlag(own []Flag, words []string) (int, error) {
	name, value, hasValue := strings.Cut(strings.TrimLeft(words[0], "-"), "=")
	if words[0] == "-h" {
		name = FlagHelp
	}
	flag, known := findFlag(own, name)
	long := strings.HasPrefix(words[0], "--")
	if !known || long != (name == flag.Name) && words[0] != "-h" {
		return 0, unknownFlag(own, words[0])
	}
	name = flag.Name
	if a.Has(name) {
		return 0, usageError("--%s is given twice", name)
	}
	used := 1
	switch {
	case flag.Value == "" && hasValue:
		return 0, usageError("--%s takes no value", name)
	case flag.Value == "" || flag.Optional && !hasValue:
	case !hasValue && len(words) < 2:
		return 0, usageError("--%s needs a value: %s", name, flag.usage())
	case !hasValue:
		value, used = words[1], 2
	}
	if flag.Value != "" && value == "" && (hasValue || !flag.Optional) {
		return 0, usageError("--%s needs a value: %s", name, flag.usage())
	}
	a.flags[name] = value
	return used, nil
}

func unknownFlag(own []Flag, word string) error {
	var names []string
	for _, f := range own {
		names = append(names, "--"+f.Name)
	}
	for _, f := range commonFlags() {
		names = append(names, "--"+f.Name)
	}
	name, _, _ := strings.Cut(word, "=")
	return usageError("no such flag: %s%s (there are %s; put -- before a word that begins with - and is no flag)",
		name, didYouMean("--"+strings.TrimLeft(name, "-"), names), strings.Join(names, ", "))
}
