package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v4"
)

// The queue of the worker that does what a worker should not.
const (
	misbehave = "misbehave"
	maxKills  = 2
)

// places are the files of the demonstration's manager, all in one directory.
type places struct {
	dir, config, socket, log string
}

func placesIn(dir string) places {
	return places{
		dir: dir, config: filepath.Join(dir, "demo.yaml"), socket: filepath.Join(dir, "drover.sock"), log: filepath.Join(dir, "droverd.log"),
	}
}

// writeConfig derives the manager's configuration from the one for development: all state in a directory of its own, the
// programs by absolute paths, and one more plugin with its queue.
func writeConfig(source string, p places, bin, misbehaveProgram string) error {
	text, err := os.ReadFile(source) //nolint:gosec // the path is the caller's to choose
	if err != nil {
		return fmt.Errorf("read the development configuration: %w; run the demonstration at the root of the repository, or name the file with -config", err)
	}
	derived, err := deriveConfig(text, p, bin, misbehaveProgram)
	if err != nil {
		return fmt.Errorf("derive the demonstration's configuration from %s: %w", source, err)
	}
	if err := os.WriteFile(p.config, derived, 0o600); err != nil {
		return fmt.Errorf("write the demonstration's configuration: %w", err)
	}
	return nil
}

type section = map[string]any

func deriveConfig(text []byte, p places, bin, misbehaveProgram string) ([]byte, error) {
	var config struct {
		Manager section            `yaml:"manager"`
		Redis   section            `yaml:"redis"`
		Plugins map[string]section `yaml:"plugins"`
		Queues  map[string]section `yaml:"queues"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	feedPull, ok := config.Plugins["feed-pull"]
	if !ok || config.Manager == nil || config.Queues == nil {
		return nil, errors.New("it has no plugin feed-pull, no section manager or no section queues")
	}
	options, ok := feedPull["options"].(section)
	if !ok {
		return nil, errors.New("its plugin feed-pull has no options")
	}
	config.Manager["name"] = "demo"
	config.Manager["state_dir"] = p.dir
	config.Manager["socket"] = p.socket
	feedPull["command"] = []string{filepath.Join(bin, "plugins", "feed-pull")}
	options["store"] = "sqlite:" + filepath.Join(p.dir, "feeds.db")
	for name := range config.Plugins { // what the demonstration does not show is left out
		if name != "feed-pull" {
			delete(config.Plugins, name)
		}
	}
	for name, queue := range config.Queues {
		if queue["plugin"] != "feed-pull" {
			delete(config.Queues, name)
		}
	}
	config.Plugins[misbehave] = section{"command": []string{misbehaveProgram}}
	config.Queues[misbehave] = section{"plugin": misbehave, "max_workers": 1, "slots": 1, "max_kills": maxKills, "retry_backoff": "100ms"}
	return yaml.Marshal(config)
}
