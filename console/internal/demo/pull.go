package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// feedQueue is the queue of the configuration that pulls feeds.
const feedQueue = "feed-pull"

// expectation is one address of the site and what must come of it.
type expectation struct {
	path, shows string
	entries     int        // new ones, at the first pull
	warns       bool       // something was lost, and is told
	fault       fault.Kind // the pull fails for good
	title       string     // of the feed; empty is not looked at
}

func expectations() []expectation {
	return []expectation{
		{path: "/rss.xml", shows: "RSS 2.0", entries: 3, title: "RSS"},
		{path: "/atom.xml", shows: "Atom 1.0", entries: 2, title: "Atom"},
		{path: "/feed.json", shows: "JSON Feed 1.1", entries: 2, title: "JSON Feed"},
		{path: "/charset.xml", shows: "UTF-8, though labelled windows-1251", entries: 2, title: "Grüße aus Köln"},
		{path: "/old-place.xml", shows: "moved: a redirect is followed", entries: 2, title: "Moved"},
		{path: "/etag.xml", shows: "knows what its reader has (ETag)", entries: 2, title: "ETag"},
		{path: "/broken.xml", shows: "cut off in its third entry", entries: 2, warns: true},
		{path: pathNotFeed, shows: "a login page, not a feed", fault: fault.WrongContent},
		{path: pathSlow, shows: "answers after " + screen.Duration(slowness), entries: 1, title: "Slow"},
	}
}

// pulled is what feed-pull returns, as far as it is shown.
type pulled struct {
	Status     string   `json:"status"`
	NewEntries int      `json:"new_entries"`
	Title      string   `json:"title"`
	Warnings   []string `json:"warnings"`
}

// pullAll submits every address, shows each end as it comes, and returns all that differs from what check expects.
func (d *demo) pullAll(ctx context.Context, all []expectation, check func(expectation, *task.Task, pulled) error) error {
	ids := make([]task.ID, 0, len(all))
	about := make(map[task.ID]expectation, len(all))
	for _, e := range all {
		submitted, err := d.manager.tasks.Submit(ctx, feedQueue, map[string]string{"url": d.site.url(e.path)})
		if err != nil {
			return fmt.Errorf("submit %s: %w", e.path, err)
		}
		ids = append(ids, submitted.ID)
		about[submitted.ID] = e
	}
	d.tell.row(screen.Plain, "ADDRESS", "STATE", "RESULT", "ENTRIES", "TIME", "WHAT IT IS")
	var wrong []error
	var remarks []string
	for update, err := range d.manager.tasks.Subscribe(ctx, ids) {
		if err != nil {
			return fmt.Errorf("wait for the pulls: %w", err)
		}
		e, known := about[update.ID]
		if !known || update.Ended == nil {
			return fmt.Errorf("an answer about %s that nobody expects", update.ID)
		}
		delete(about, update.ID)
		remarks = append(remarks, remark(e, update.Ended)...)
		if err := d.showPull(e, update.Ended, check); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", e.path, err))
		}
	}
	for _, line := range remarks {
		d.tell.say("%s", line)
	}
	if len(about) > 0 {
		wrong = append(wrong, fmt.Errorf("%d pulls never ended", len(about)))
	}
	return errors.Join(wrong...)
}

// remark is what a pull says beside its numbers: why it failed, or what its feed lost.
func remark(e expectation, t *task.Task) []string {
	if t.State != task.Completed {
		return []string{fmt.Sprintf("%s: %s", e.path, reason(t))}
	}
	var result pulled
	if json.Unmarshal(t.Result, &result) != nil {
		return nil // showPull says so
	}
	lines := make([]string, len(result.Warnings))
	for i, warning := range result.Warnings {
		lines[i] = fmt.Sprintf("%s: %s", e.path, warning)
	}
	return lines
}

func (d *demo) showPull(e expectation, t *task.Task, check func(expectation, *task.Task, pulled) error) error {
	var result pulled
	if t.State == task.Completed {
		if err := json.Unmarshal(t.Result, &result); err != nil {
			return fmt.Errorf("read the result %.200s: %w", t.Result, err)
		}
	}
	row := []string{e.path, t.State.String(), result.Status, fmt.Sprintf("%d new", result.NewEntries), screen.Duration(t.Run), e.shows}
	paint := screen.Good
	if t.State != task.Completed {
		paint, row[2], row[3] = screen.Warn, faultKind(t), ""
	}
	d.tell.row(paint, row...)
	return check(e, t, result)
}

// checkFirst is what must come of an address that was never pulled before.
func checkFirst(e expectation, t *task.Task, r pulled) error {
	if e.fault != fault.None {
		return checkFault(e, t)
	}
	switch {
	case t.State != task.Completed:
		return fmt.Errorf("the state is %s, not completed: %s", t.State, reason(t))
	case r.Status != "new":
		return fmt.Errorf("the status is %q, not \"new\"", r.Status)
	case r.NewEntries != e.entries:
		return fmt.Errorf("%d new entries, not %d", r.NewEntries, e.entries)
	case e.title != "" && r.Title != e.title:
		return fmt.Errorf("the title is %q, not %q", r.Title, e.title)
	case e.warns && len(r.Warnings) == 0:
		return errors.New("nothing warns of what was lost")
	}
	return nil
}

// checkAgain is what must come of an address whose content has not changed.
func checkAgain(_ expectation, t *task.Task, r pulled) error {
	switch {
	case t.State != task.Completed:
		return fmt.Errorf("the state is %s, not completed: %s", t.State, reason(t))
	case r.Status != "unchanged" || r.NewEntries != 0:
		return fmt.Errorf("the status is %q with %d new entries, not \"unchanged\"", r.Status, r.NewEntries)
	}
	return nil
}

func checkFault(e expectation, t *task.Task) error {
	if t.State != task.Dead || t.Fault == nil || t.Fault.Kind != e.fault || strings.TrimSpace(t.Fault.Message) == "" {
		return fmt.Errorf("the state is %s with %s, not dead with %s", t.State, reason(t), e.fault)
	}
	return nil
}

// waitFor waits for one task, within a time.
func (d *demo) waitFor(ctx context.Context, id task.ID, patience time.Duration) (*task.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return client.Wait(ctx, d.manager.tasks, id)
}

func faultKind(t *task.Task) string {
	if t.Fault == nil {
		return ""
	}
	return t.Fault.Kind.String()
}

// reason is a task's last failure in words.
func reason(t *task.Task) string {
	if t.Fault == nil {
		return "no error"
	}
	return t.Fault.Error()
}
