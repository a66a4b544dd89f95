package task

import (
	"encoding/json"
	"strconv"
	"strings"
)

// maxPlain is how many digits a number may have to be written without an exponent.
const maxPlain = 21

// canonicalNumbers rewrites every number within value, in place where it can, and returns it.
func canonicalNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		return json.Number(canonicalNumber(string(v)))
	case map[string]any:
		for name, member := range v {
			v[name] = canonicalNumbers(member)
		}
	case []any:
		for i, element := range v {
			v[i] = canonicalNumbers(element)
		}
	}
	return value
}

// canonicalNumber gives every way of writing a JSON number the same text: 1, 1.0, 10e-1 and 0.1E+1 are "1". It works on the
// digits, so that no number is rounded. Numbers whose exponent is beyond any use stay as they are.
func canonicalNumber(text string) string {
	mantissa, exponentText, _ := strings.Cut(strings.ToLower(text), "e")
	exponent := 0
	if exponentText != "" {
		n, err := strconv.ParseInt(exponentText, 10, 32)
		if err != nil {
			return text
		}
		exponent = int(n)
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	if digits == "" {
		return "0"
	}
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	number := place(trimmed, exponent)
	if negative {
		return "-" + number
	}
	return number
}

// place writes digits * 10^exponent. The digits neither begin nor end with 0.
func place(digits string, exponent int) string {
	point := len(digits) + exponent // where the point stands, counted from the first digit
	switch {
	case exponent >= 0 && point <= maxPlain:
		return digits + strings.Repeat("0", exponent)
	case exponent < 0 && point > 0:
		return digits[:point] + "." + digits[point:]
	case exponent < 0 && point > -6:
		return "0." + strings.Repeat("0", -point) + digits
	case len(digits) == 1:
		return digits + "e" + strconv.Itoa(point-1)
	default:
		return digits[:1] + "." + digits[1:] + "e" + strconv.Itoa(point-1)
	}
}
