package settings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// off is the word for "this limit does not apply".
const off = "off"

// field ties a row of the table to the place where its value lives in a T.
type field[T any] struct {
	Setting
	// decode reads the text into T, or says why it will not do; the error names neither the setting nor the value.
	decode func(*T, string) error
	// encode writes the value in its canonical form.
	encode func(*T) string
}

// notation is how the values of one kind are read, written and compared.
type notation[V comparable] struct {
	kind    Kind
	parse   func(string) (V, error)
	format  func(V) string
	compare func(a, b V) int
}

// bounds are the least and the greatest value, both included, and the default.
type bounds[V any] struct {
	lo, hi, def V
}

// ranged makes the field of a setting that has a range. A zero value stands for off when the row says what off means.
func ranged[T any, V comparable](s Setting, n notation[V], b bounds[V], at func(*T) *V) field[T] {
	var zero V
	format := func(v V) string {
		if s.Off != "" && v == zero {
			return off
		}
		return n.format(v)
	}
	s.Kind, s.Min, s.Max, s.Default = n.kind, n.format(b.lo), n.format(b.hi), format(b.def)
	read := func(text string) (V, error) {
		if text == off {
			if s.Off == "" {
				return zero, errors.New("cannot be off")
			}
			return zero, nil
		}
		v, err := n.parse(text)
		switch {
		case err != nil:
			return zero, err
		case v == zero && s.Off != "":
			return zero, nil
		case n.compare(v, b.lo) < 0:
			return zero, fmt.Errorf("is below %s", s.Min)
		case n.compare(v, b.hi) > 0:
			return zero, fmt.Errorf("is above %s", s.Max)
		}
		return v, nil
	}
	return field[T]{
		Setting: s,
		decode: func(t *T, text string) error {
			v, err := read(text)
			if err != nil {
				return err
			}
			*at(t) = v
			return nil
		},
		encode: func(t *T) string { return format(*at(t)) },
	}
}

func count[T any](s Setting, b bounds[int], at func(*T) *int) field[T] {
	return ranged(s, notation[int]{KindCount, parseCount, strconv.Itoa, cmp.Compare[int]}, b, at)
}

func duration[T any](s Setting, b bounds[time.Duration], at func(*T) *time.Duration) field[T] {
	n := notation[time.Duration]{KindDuration, ParseDuration, FormatDuration, cmp.Compare[time.Duration]}
	return ranged(s, n, b, at)
}

func size[T any](s Setting, b bounds[Bytes], at func(*T) *Bytes) field[T] {
	return ranged(s, notation[Bytes]{KindBytes, ParseBytes, Bytes.String, cmp.Compare[Bytes]}, b, at)
}

func rate[T any](s Setting, b bounds[Rate], at func(*T) *Rate) field[T] {
	return ranged(s, notation[Rate]{KindRate, ParseRate, Rate.String, compareRates}, b, at)
}

// choice makes the field of a setting that takes one of a few words; the first is the default.
func choice[T any, V ~string](s Setting, words []V, at func(*T) *V) field[T] {
	for _, w := range words {
		s.Choices = append(s.Choices, string(w))
	}
	s.Kind, s.Default = KindChoice, s.Choices[0]
	return field[T]{
		Setting: s,
		decode: func(t *T, text string) error {
			if !slices.Contains(s.Choices, text) {
				return errors.New("is not one of the choices" + hint(text, s.Choices))
			}
			*at(t) = V(text)
			return nil
		},
		encode: func(t *T) string { return string(*at(t)) },
	}
}

// written makes the field of a setting that is a text; parse returns its canonical form.
func written[T any](s Setting, byDefault string, parse func(string) (string, error), at func(*T) *string) field[T] {
	s.Kind, s.Default = KindText, byDefault
	return field[T]{
		Setting: s,
		decode: func(t *T, text string) error {
			if text == off && s.Off != "" {
				*at(t) = ""
				return nil
			}
			value, err := parse(text)
			if err != nil {
				return err
			}
			*at(t) = value
			return nil
		},
		encode: func(t *T) string {
			if value := *at(t); value != "" || s.Off == "" {
				return value
			}
			return off
		},
	}
}

// parseCount refuses signs, fractions and leading zeros: 010 is eight to some people.
func parseCount(text string) (int, error) {
	if !isDigits(text) || (len(text) > 1 && text[0] == '0') {
		return 0, errors.New("is not a whole number")
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, errors.New("is too large")
	}
	return n, nil
}
