package settings

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Bytes is a size in bytes.
type Bytes int64

// The units of Bytes.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	KB  Bytes = 1e3
	MB  Bytes = 1e6
	GB  Bytes = 1e9
)

type byteUnit struct {
	name string
	size Bytes
}

// byteUnits lists the units from the largest to the smallest; binary ones go before decimal ones, as memory is counted in them.
func byteUnits() []byteUnit {
	return []byteUnit{{"GiB", GiB}, {"GB", GB}, {"MiB", MiB}, {"MB", MB}, {"KiB", KiB}, {"KB", KB}, {"B", 1}}
}

// ParseBytes reads a size as a person writes it: "256MiB", "1.5GB", "4096B", "0". The case of the unit does not matter. A
// number without a unit is refused, as nobody can know what was meant, and so is one that is not a whole number of bytes.
// The error reads on after the value: "has no unit".
func ParseBytes(text string) (Bytes, error) {
	if text == "0" {
		return 0, nil
	}
	end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end == 0 || text == "" {
		return 0, errors.New("is not a size")
	}
	if end < 0 {
		return 0, fmt.Errorf("has no unit; write %sMiB, %sMB or %sB", text, text, text)
	}
	number, name := text[:end], text[end:]
	for _, unit := range byteUnits() {
		if strings.EqualFold(unit.name, name) {
			return scale(number, unit.size)
		}
	}
	return 0, fmt.Errorf("has the unit %q, which is not known; units are B, KiB, MiB, GiB, KB, MB and GB", name)
}

// scale works in fractions, not floats, so that what is accepted is exact.
func scale(number string, unit Bytes) (Bytes, error) {
	const digits = 40
	whole, fraction, point := strings.Cut(number, ".")
	if len(number) > digits || !isDigits(whole) || (point && !isDigits(fraction)) {
		return 0, errors.New("is not a size")
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, errors.New("is not a size")
	}
	value.Mul(value, new(big.Rat).SetInt64(int64(unit)))
	if !value.IsInt() {
		return 0, errors.New("is not a whole number of bytes")
	}
	if !value.Num().IsInt64() {
		return 0, errors.New("is too large")
	}
	return Bytes(value.Num().Int64()), nil
}

// String writes the size with the largest unit that divides it, so that ParseBytes reads back exactly the same.
func (b Bytes) String() string {
	for _, unit := range byteUnits() {
		if b != 0 && b%unit.size == 0 {
			return strconv.FormatInt(int64(b/unit.size), 10) + unit.name
		}
	}
	return "0B"
}

// about writes a size for people, rounded to what they care about.
func (b Bytes) about() string {
	switch {
	case b >= 10*GiB:
		return fmt.Sprintf("%d GiB", (b+GiB/2)/GiB)
	case b >= MiB:
		return fmt.Sprintf("%d MiB", (b+MiB/2)/MiB)
	default:
		return fmt.Sprintf("%d KiB", (b+KiB/2)/KiB)
	}
}
