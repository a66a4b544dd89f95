package command_test

import (
	"slices"
	"testing"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// A schedule is changed by way of its settings: the one of cron and every that is not named any more is switched off, and only then.
func TestScheduleSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words []string
		want  []string
	}{
		{[]string{"nightly", "every=10m", "jitter=30s"}, []string{"every=10m", "jitter=30s", "cron=off"}},
		{[]string{"nightly", "cron=@daily"}, []string{"cron=@daily"}},
		{[]string{"nightly", "every=10m", "cron=off"}, []string{"every=10m", "cron=off"}},
		{[]string{"often", "cron=0 3 * * *"}, []string{"cron=0 3 * * *", "every=off"}},
		{[]string{"often", "payload={\"a\":\"b=c.d\"}"}, []string{"payload={\"a\":\"b=c.d\"}"}},
	} {
		m := &manager{}
		attach(t, m).run(t.Context(), append([]string{"schedule", "set"}, c.words...)...)
		var got []string
		for _, r := range m.requests() {
			if change, ok := r.(*apiv1.ChangeSettingsRequest); ok {
				for _, x := range change.GetChanges() {
					if x.GetQueue() != "schedule:"+c.words[0] {
						t.Errorf("%v changes %s", c.words, x.GetQueue())
					}
					got = append(got, x.GetName()+"="+x.GetValue())
				}
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v changes %q, want %q", c.words, got, c.want)
		}
	}
}
