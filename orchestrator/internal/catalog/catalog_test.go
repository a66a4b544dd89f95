package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/catalog"
	workerv1 "github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

const wantsURL = `{"type":"object","required":["url"],"properties":{"url":{"type":"string"}}}`

func manifest(schema string) *workerv1.Manifest {
	return &workerv1.Manifest{Name: "pull", PayloadSchema: schema}
}

// Every plugin is asked once, all at once; one that fails is kept with its error and the others are known.
func TestAsk(t *testing.T) {
	t.Parallel()
	c := catalog.New(map[string][]string{"good": {"a"}, "bad": {"b"}, "odd": {"c"}})
	var mu sync.Mutex
	asked := map[string]int{}
	together := make(chan struct{})
	c.Ask(t.Context(), func(_ context.Context, name string) (*workerv1.Manifest, error) {
		mu.Lock()
		if asked[name]++; len(asked) == 3 {
			close(together)
		}
		mu.Unlock()
		<-together
		switch name {
		case "good":
			return manifest(wantsURL), nil
		case "odd":
			return manifest(`{"type":7}`), nil
		default:
			return nil, errors.New("no such file")
		}
	})
	for name, n := range asked {
		if n != 1 {
			t.Errorf("%s was asked %d times", name, n)
		}
	}
	if p, ok := c.Get("good"); !ok || p.Err != nil || p.Manifest.GetName() != "pull" || p.Command[0] != "a" {
		t.Errorf("good is %+v", p)
	}
	if p, ok := c.Get("bad"); !ok || p.Err == nil || p.Manifest != nil {
		t.Errorf("bad is %+v", p)
	}
	if p, ok := c.Get("odd"); !ok || p.Err == nil || p.Manifest != nil || !strings.Contains(p.Err.Error(), "odd") {
		t.Errorf("a plugin with an unsound schema is %+v", p)
	}
	if _, ok := c.Get("none"); ok || len(c.All()) != 3 {
		t.Errorf("there are %d plugins", len(c.All()))
	}
}

// What a plugin said last counts; an error afterwards is shown, and what it said before is still used.
func TestNote(t *testing.T) {
	t.Parallel()
	c := catalog.New(map[string][]string{"p": {"a"}})
	if err := c.Check("p", []byte(`{}`)); err != nil {
		t.Errorf("before it is known every object fits: %v", err)
	}
	c.Note("p", manifest(wantsURL), nil)
	if err := c.Check("p", []byte(`{"url":1}`)); err == nil || !strings.Contains(err.Error(), "url") {
		t.Errorf("the error does not name the field: %v", err)
	}
	c.Note("p", nil, errors.New("crashed"))
	if p, _ := c.Get("p"); p.Err == nil || p.Manifest == nil || c.Check("p", []byte(`{}`)) == nil {
		t.Errorf("after an error it is %+v", p)
	}
	c.Note("p", manifest(`{"type":7}`), nil)
	if p, _ := c.Get("p"); p.Err == nil || p.Manifest.GetPayloadSchema() != wantsURL {
		t.Errorf("after an unsound schema it is %+v", p)
	}
	c.Note("p", manifest(""), nil)
	if p, _ := c.Get("p"); p.Err != nil || c.Check("p", []byte(`{}`)) != nil {
		t.Errorf("after a new manifest it is %+v", p)
	}
	c.Note("stranger", manifest(""), nil)
	if _, ok := c.Get("stranger"); ok {
		t.Error("a plugin that is not configured was taken in")
	}
	for _, payload := range []string{``, `[]`, `null`, `{`} {
		if c.Check("p", []byte(payload)) == nil {
			t.Errorf("the payload %q fits", payload)
		}
	}
}

// A plugin comes with the configuration and goes with it; one whose command changes is known by what it said until it says something
// else, without the errors and sums of its old program.
func TestSetAndForget(t *testing.T) {
	t.Parallel()
	c := catalog.New(map[string][]string{"p": {"a"}})
	c.Note("p", manifest(wantsURL), nil)
	c.Note("p", nil, errors.New("crashed"))
	c.Program("p", "abc", "not sound")
	c.Set("p", []string{"b"})
	if p, _ := c.Get("p"); p.Command[0] != "b" || p.Err != nil || p.Sum != "" || p.Refused != "" || p.Manifest == nil || c.Check("p", []byte(`{}`)) == nil {
		t.Errorf("after its command has changed it is %+v", p)
	}
	c.Set("new", []string{"c"})
	c.Note("new", manifest(""), nil)
	if p, ok := c.Get("new"); !ok || p.Manifest == nil || p.Command[0] != "c" {
		t.Errorf("the new one is %+v", p)
	}
	c.Forget("p")
	if _, ok := c.Get("p"); ok || len(c.All()) != 1 {
		t.Errorf("there are %d", len(c.All()))
	}
}

// Notes, checks and reads from many goroutines do not disturb each other: a reader always sees one whole plugin.
func TestConcurrentNotes(t *testing.T) {
	t.Parallel()
	c := catalog.New(map[string][]string{"p": {"a"}})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 200 {
				switch i % 4 {
				case 0:
					c.Note("p", &workerv1.Manifest{Name: fmt.Sprint(n), PayloadSchema: wantsURL}, nil)
				case 1:
					c.Note("p", nil, errors.New("crashed"))
				case 2:
					_ = c.Check("p", []byte(`{"url":"x"}`))
				default:
					if p, ok := c.Get("p"); !ok || p.Err == nil && p.Manifest == nil && len(c.All()) != 1 {
						t.Errorf("it is %+v", p)
					}
				}
			}
		})
	}
	all.Wait()
	c.Note("p", manifest(wantsURL), nil)
	if p, _ := c.Get("p"); p.Err != nil || p.Manifest.GetName() != "pull" {
		t.Errorf("in the end it is %+v", p)
	}
}
