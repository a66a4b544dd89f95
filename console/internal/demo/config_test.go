package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/drover-jobs/drover/protocol/testenv"
)

// The demonstration's manager has all of its state in its own directory, whatever the development configuration says, and the
// rest as it stands there.
func TestDeriveConfig(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(testenv.ModuleRoot(t), "configs", "dev.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	derived, err := deriveConfig(text, placesIn("/tmp/drv1"), "/opt/bin", "/opt/misbehave")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Manager map[string]any
		Redis   map[string]any
		Plugins map[string]struct {
			Command []string
			Options map[string]any
		}
		Queues map[string]map[string]any
	}
	if err := yaml.Unmarshal(derived, &got); err != nil {
		t.Fatal(err)
	}
	feedPull := got.Plugins["feed-pull"]
	if got.Manager["state_dir"] != "/tmp/drv1" || got.Manager["socket"] != "/tmp/drv1/drover.sock" || got.Redis["embedded"] != true ||
		feedPull.Command[0] != "/opt/bin/plugins/feed-pull" || feedPull.Options["store"] != "sqlite:/tmp/drv1/feeds.db" ||
		feedPull.Options["allow_networks"] == nil || got.Plugins[misbehave].Command[0] != "/opt/misbehave" ||
		got.Queues[misbehave]["plugin"] != misbehave || got.Queues[feedQueue] == nil {
		t.Errorf("derived:\n%s", derived)
	}
	if strings.Contains(string(derived), "var/") {
		t.Errorf("the development state directory is named:\n%s", derived)
	}
}

// A configuration that is not the development one is refused with what it lacks.
func TestDeriveConfigRefuses(t *testing.T) {
	t.Parallel()
	for text, message := range map[string]string{
		"{": "", "manager: {}\nplugins: {}": "no plugin feed-pull", "plugins: {feed-pull: {}}": "no section manager",
		"manager: {name: x}\nplugins: {feed-pull: {}}\nqueues: {q: {}}": "no options",
		"manager: {name: x}\nplugins: {feed-pull: {}}":                  "no section queues",
	} {
		if _, err := deriveConfig([]byte(text), placesIn("/x"), "/b", "/m"); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%q: %v, want %q", text, err, message)
		}
	}
}
