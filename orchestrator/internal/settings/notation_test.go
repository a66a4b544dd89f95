package settings_test

import (
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// A duration means what it says, comes back in one canonical form, and anything doubtful is refused.
func TestParseDuration(t *testing.T) {
	t.Parallel()
	good := map[string]struct {
		want time.Duration
		text string
	}{
		"0":       {0, "0s"},
		"0s":      {0, "0s"},
		"90s":     {90 * time.Second, "1m30s"},
		"10m":     {10 * time.Minute, "10m"},
		"1h":      {time.Hour, "1h"},
		"1h5s":    {time.Hour + 5*time.Second, "1h0m5s"},
		"1.5h":    {90 * time.Minute, "1h30m"},
		"250ms":   {250 * time.Millisecond, "250ms"},
		"24h":     {24 * time.Hour, "1d"},
		"7d":      {168 * time.Hour, "7d"},
		"1d12h":   {36 * time.Hour, "1d12h"},
		"106751d": {106751 * 24 * time.Hour, "106751d"},
	}
	for in, want := range good {
		got, err := settings.ParseDuration(in)
		if err != nil || got != want.want || settings.FormatDuration(got) != want.text {
			t.Errorf("%q: %v (%s), %v; want %v (%s)", in, got, settings.FormatDuration(got), err, want.want, want.text)
		}
	}
	for _, in := range []string{"", "5", "-5s", "+5s", ".5s", "5 s", "s", "five", "5x", "1dd", "d", "1d-5s", "1.5d", "1h1d", "106752d", "106751d999h", "99999999999999999999d", "1e3s"} {
		if got, err := settings.ParseDuration(in); err == nil {
			t.Errorf("%q was read as %v", in, got)
		}
	}
}

// A size is exact to the byte, and a number without a unit is never guessed at.
func TestParseBytes(t *testing.T) {
	t.Parallel()
	good := map[string]struct {
		want settings.Bytes
		text string
	}{
		"0":       {0, "0B"},
		"0MiB":    {0, "0B"},
		"1B":      {1, "1B"},
		"256MiB":  {256 << 20, "256MiB"},
		"256mib":  {256 << 20, "256MiB"},
		"1GB":     {1e9, "1GB"},
		"1.5GiB":  {3 << 29, "1536MiB"},
		"0.1KB":   {100, "100B"},
		"1024KiB": {1 << 20, "1MiB"},
		"1000KB":  {1e6, "1MB"},
	}
	for in, want := range good {
		got, err := settings.ParseBytes(in)
		if err != nil || got != want.want || got.String() != want.text {
			t.Errorf("%q: %d (%s), %v; want %d (%s)", in, got, got, err, want.want, want.text)
		}
	}
	for _, in := range []string{"", "256", "256M", "256 MiB", "-1MiB", "MiB", ".5GiB", "1.GiB", "1..5GiB", "0.5B", "1e3B", "8589934592GiB", "1/2GiB", "0x10B"} {
		if got, err := settings.ParseBytes(in); err == nil {
			t.Errorf("%q was read as %d", in, got)
		}
	}
}

// A rate keeps the period it was written with.
func TestParseRate(t *testing.T) {
	t.Parallel()
	good := map[string]struct {
		want   settings.Rate
		text   string
		second float64
	}{
		"off":   {settings.Rate{}, "off", 0},
		"0":     {settings.Rate{}, "off", 0},
		"0/s":   {settings.Rate{}, "off", 0},
		"10/s":  {settings.Rate{Tasks: 10, Per: time.Second}, "10/s", 10},
		"600/m": {settings.Rate{Tasks: 600, Per: time.Minute}, "600/m", 10},
		"18/h":  {settings.Rate{Tasks: 18, Per: time.Hour}, "18/h", 0.005},
	}
	for in, want := range good {
		got, err := settings.ParseRate(in)
		if err != nil || got != want.want || got.String() != want.text || got.PerSecond() != want.second {
			t.Errorf("%q: %v (%s, %v/s), %v; want %v", in, got, got, got.PerSecond(), err, want)
		}
	}
	for _, in := range []string{"", "10", "10/", "/s", "10/d", "10/S", "-1/s", "1.5/s", "10 /s", "10/s/s", "1000000001/s", "99999999999999999999/s"} {
		if got, err := settings.ParseRate(in); err == nil {
			t.Errorf("%q was read as %v", in, got)
		}
	}
}

// Whatever text is thrown at the duration parser, what it accepts is not negative and survives being written and read again.
func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"0", "90s", "1h30m", "7d", "1d12h", "-5s", "106751d23h47m16.854775807s", "1µs", "d", "1.0000000001s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := settings.ParseDuration(text)
		if err != nil {
			return
		}
		again, err := settings.ParseDuration(settings.FormatDuration(d))
		if err != nil || again != d || d < 0 {
			t.Fatalf("%q: %d came back as %q = %d, %v", text, d, settings.FormatDuration(d), again, err)
		}
	})
}

// Whatever text is thrown at the size parser, what it accepts is not negative and survives being written and read again.
func FuzzParseBytes(f *testing.F) {
	for _, seed := range []string{"0", "256MiB", "1.5GB", "1kib", "0.001KB", "9223372036854775807B", "9999999999GiB", "1/3B"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := settings.ParseBytes(text)
		if err != nil {
			return
		}
		again, err := settings.ParseBytes(b.String())
		if err != nil || again != b || b < 0 {
			t.Fatalf("%q: %d came back as %q = %d, %v", text, b, b, again, err)
		}
	})
}

// Whatever text is thrown at the rate parser, what it accepts survives being written and read again.
func FuzzParseRate(f *testing.F) {
	for _, seed := range []string{"off", "0", "10/s", "600/m", "5/h", "1/d", "-1/s", "1000000000/s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := settings.ParseRate(text)
		if err != nil {
			return
		}
		again, err := settings.ParseRate(r.String())
		if err != nil || again != r {
			t.Fatalf("%q: %v came back as %q = %v, %v", text, r, r, again, err)
		}
	})
}
