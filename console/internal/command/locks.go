package command

import (
	"context"
	"fmt"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func locksCommand() *Command {
	return &Command{
		Section: SectionLook,
		Name:    "locks",
		Summary: "the locks that this manager's tasks have or wait for",
		Help: `A lock is renewed while its task is held; LEFT is how long it is believed in without that. A task that waits shows who has
the lock, as far as that is known. It answers while the store of locks is away, and says so.`,
		Examples: []Example{{`drover locks`, "who holds what, who waits for whom"}},
		Run:      runLocks,
	}
}

type locksJSON struct {
	Store      string     `json:"store"`
	StoreError string     `json:"store_error,omitempty"`
	Held       []lockJSON `json:"held"`
	Waiting    []lockJSON `json:"waiting"`
}

type lockJSON struct {
	Key           string     `json:"key"`
	Queue         string     `json:"queue"`
	Task          string     `json:"task"`
	Since         *time.Time `json:"since,omitempty"`
	Until         *time.Time `json:"until,omitempty"`
	HolderTask    string     `json:"holder_task,omitempty"`
	HolderManager string     `json:"holder_manager,omitempty"`
}

func runLocks(ctx context.Context, env *Env, _ *Args) error {
	l, err := ask(ctx, "list the locks", env.Control.Locks, &apiv1.LocksRequest{})
	if err != nil {
		return err
	}
	if env.JSON {
		return screen.WriteJSON(env.Out, locksJSON{Store: l.GetStore(), StoreError: l.GetStoreError(), Held: lockViews(l.GetHeld()), Waiting: lockViews(l.GetWaiting())})
	}
	var f screen.Fields
	if why := l.GetStoreError(); why != "" {
		f.AddPainted("Store", fmt.Sprintf("%s does not answer: %s", l.GetStore(), why), screen.Bad)
	} else {
		f.Add("Store", l.GetStore())
	}
	f.Add("Held", fmt.Sprint(len(l.GetHeld())))
	f.Add("Waiting", fmt.Sprintf("%d tasks", len(l.GetWaiting())))
	if err := f.Write(env.Out, env.style()); err != nil || len(l.GetHeld())+len(l.GetWaiting()) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(env.Out); err != nil {
		return err
	}
	return lockTable(env, l).Write(env.Out, env.style())
}

func lockTable(env *Env, l *apiv1.LocksResponse) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{
		{Title: "STATE"}, {Title: "FOR", Right: true}, {Title: "LEFT", Right: true, Spare: 1}, {Title: "TASK", Flexible: true},
		{Title: "LOCK", Flexible: true}, {Title: "HOLDER", Flexible: true, Spare: 2},
	}}
	for _, k := range l.GetHeld() {
		left := ""
		if k.GetUntilMs() > 0 {
			left = screen.Duration(time.UnixMilli(k.GetUntilMs()).Sub(env.Now()))
		}
		t.Add(screen.Cell{Text: "held", Paint: screen.Good}, screen.Text(age(env, k.GetSinceMs())), screen.Text(left),
			screen.Text(k.GetTaskId()), screen.Text(k.GetKey()))
	}
	for _, k := range l.GetWaiting() {
		t.Add(screen.Cell{Text: "waits", Paint: screen.Warn}, screen.Text(age(env, k.GetSinceMs())), screen.Text(""),
			screen.Text(k.GetTaskId()), screen.Text(k.GetKey()), screen.Text(holderText(k)))
	}
	return t
}

// holderText says who has the lock that is waited for.
func holderText(k *apiv1.Lock) string {
	switch {
	case k.GetHolderTaskId() != "" && k.GetHolderManager() != "":
		return fmt.Sprintf("%s in manager %s", k.GetHolderTaskId(), k.GetHolderManager())
	case k.GetHolderTaskId() != "":
		return k.GetHolderTaskId()
	case k.GetHolderManager() != "":
		return "manager " + k.GetHolderManager()
	default:
		return "not known"
	}
}

func lockViews(locks []*apiv1.Lock) []lockJSON {
	views := make([]lockJSON, len(locks))
	for i, k := range locks {
		views[i] = lockJSON{
			Key: k.GetKey(), Queue: k.GetQueue(), Task: k.GetTaskId(), Since: moment(k.GetSinceMs()), Until: moment(k.GetUntilMs()),
			HolderTask: k.GetHolderTaskId(), HolderManager: k.GetHolderManager(),
		}
	}
	return views
}
