package command

import (
	"context"
	"fmt"
	"slices"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// What a restart of the manager would bring back, because it was saved and has been changed or taken back since.

type broughtBackJSON struct {
	Queue string `json:"queue,omitempty"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

// comesBack reports whether a restart gives a setting another value than it has now.
func comesBack(s *apiv1.Setting) bool {
	return s.GetSavedValue() != "" && s.GetSavedValue() != s.GetValue()
}

// broughtBack are the settings that have another value than the one that is saved.
func broughtBack(settings []*apiv1.Setting) []broughtBackJSON {
	var back []broughtBackJSON
	for _, s := range settings {
		if comesBack(s) {
			back = append(back, broughtBackJSON{Queue: s.GetQueue(), Name: s.GetName(), Value: s.GetSavedValue()})
		}
	}
	return back
}

// broughtBackOf are those among the settings that have just been changed, of a manager that answers quickly.
func broughtBackOf(ctx context.Context, env *Env, effects []effectJSON) []broughtBackJSON {
	return slices.DeleteFunc(broughtBack(settingsNow(ctx, env, "")), func(b broughtBackJSON) bool {
		return !slices.ContainsFunc(effects, func(e effectJSON) bool { return e.Queue == b.Queue && e.Name == b.Name })
	})
}

// warnOfSaved says what a restart brings back.
func warnOfSaved(env *Env, back []broughtBackJSON) error {
	for _, b := range back {
		text := fmt.Sprintf("A restart of the manager brings %s=%s back, which is saved: save again to keep what holds now.", fullName(b.Queue, b.Name), b.Value)
		if err := env.tell(text); err != nil {
			return err
		}
	}
	return nil
}
