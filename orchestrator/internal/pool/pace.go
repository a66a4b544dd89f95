package pool

import (
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// pace holds the starts of jobs to the queue's rate: a bucket of one second's worth, at least one job, that fills evenly.
// (https://en.wikipedia.org/wiki/Token_bucket)
type pace struct {
	rate   settings.Rate
	tokens float64
	filled time.Time
}

// may reports whether a job may start now.
func (b *pace) may(rate settings.Rate, now time.Time) bool {
	if rate != b.rate {
		*b = pace{rate: rate, tokens: burst(rate), filled: now}
	}
	if rate.Off() {
		return true
	}
	b.tokens = min(burst(rate), b.tokens+now.Sub(b.filled).Seconds()*rate.PerSecond())
	b.filled = now
	return b.tokens >= 1
}

// took takes a job that started.
func (b *pace) took() {
	if !b.rate.Off() {
		b.tokens--
	}
}

// wait is how long until the next job may start, when some wait.
func (b *pace) wait(now time.Time, waiting int) time.Duration {
	if b.rate.Off() || waiting == 0 || b.may(b.rate, now) {
		return time.Hour
	}
	return time.Duration((1-b.tokens)/b.rate.PerSecond()*float64(time.Second)) + time.Millisecond
}

func burst(rate settings.Rate) float64 { return max(1, rate.PerSecond()) }
