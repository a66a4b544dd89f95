// Package overlay reads and writes the manager's overlay file: the live changes of settings that were saved and outlive a
// restart.
//
// It owns the form of the file and that it is replaced as a whole or not at all. It does not own what the settings mean: a
// value is text here, and the store of package settings says at the manager's start whether it holds. A file that cannot be
// read is an error that names it, never a part of its content; the manager goes on without it, and the next Write puts the
// broken one aside as path.broken, so that nothing that a person wrote is lost.
//
// Package orchestrator calls it. It has nothing to stop.
package overlay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// maxSize bounds the file, in bytes.
const maxSize = 1 << 20

// Read returns what the file says; an empty overlay when there is none.
func Read(path string) (settings.Overlay, error) {
	none := settings.Overlay{}
	f, err := os.Open(path) //nolint:gosec // in the manager's own directory
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("read the saved settings: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return none, fmt.Errorf("read the saved settings: %w", err)
	}
	o, err := parse(data)
	if err != nil {
		return none, fmt.Errorf("read the saved settings in %s: %w; mend the file or remove it", path, err)
	}
	return o, nil
}

func parse(data []byte) (settings.Overlay, error) {
	o := settings.Overlay{}
	if len(data) > maxSize {
		return o, errors.New("the file is larger than 1MiB")
	}
	var doc, more yaml.Node
	reader := yaml.NewDecoder(bytes.NewReader(data))
	switch err := reader.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return o, nil
	case err != nil:
		return o, err
	}
	if err := reader.Decode(&more); !errors.Is(err, io.EOF) {
		return o, errors.New("there is more than one document in it")
	}
	if len(doc.Content) != 1 {
		return o, errors.New("it has no content that is understood")
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return o, nil
	}
	sections, err := mapping(root)
	if err != nil {
		return o, err
	}
	for name, section := range sections {
		switch name {
		case "manager":
			o.Manager, err = layer(section)
		case "queues":
			o.Queues, err = layers(section)
		case "schedules":
			o.Schedules, err = layers(section)
		default:
			err = fmt.Errorf("line %d: %q is not known; there are manager, queues and schedules", section.Line, name)
		}
		if err != nil {
			return settings.Overlay{}, err
		}
	}
	return o, nil
}

func mapping(n *yaml.Node) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: names with values are expected", n.Line)
	}
	members := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if _, twice := members[key.Value]; twice || key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: %q stands there twice, or is no name", key.Line, key.Value)
		}
		members[key.Value] = n.Content[i+1]
	}
	return members, nil
}

func layer(n *yaml.Node) (settings.Layer, error) {
	members, err := mapping(n)
	if err != nil {
		return nil, err
	}
	l := make(settings.Layer, len(members))
	for name, value := range members {
		if value.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: the value of %s must be one word", value.Line, name)
		}
		l[name] = value.Value
	}
	return l, nil
}

func layers(n *yaml.Node) (map[string]settings.Layer, error) {
	members, err := mapping(n)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]settings.Layer, len(members))
	for name, value := range members {
		if byName[name], err = layer(value); err != nil {
			return nil, err
		}
	}
	return byName, nil
}

// Write replaces the file with what an overlay says, and returns when it is on the disk. The mode is 0600.
func Write(path string, o settings.Overlay, who string, when time.Time) error {
	if _, err := Read(path); err != nil {
		if err := os.Rename(path, path+".broken"); err != nil {
			return fmt.Errorf("save the settings: put the broken file aside: %w", err)
		}
	}
	if err := replace(path, encode(o, who, when)); err != nil {
		return fmt.Errorf("save the settings: %w", err)
	}
	return nil
}

// encode writes every value in quotes, so that it is read back as the text it is.
func encode(o settings.Overlay, who string, when time.Time) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Settings that were changed live and saved by %s at %s.\n", oneLine(who), when.UTC().Format(time.RFC3339))
	b.WriteString("# They win over the configuration file when the manager starts; each save replaces this file.\n")
	if len(o.Manager) > 0 {
		b.WriteString("manager:\n")
		writeLayer(&b, "  ", o.Manager)
	}
	writeLayers(&b, "queues", o.Queues)
	writeLayers(&b, "schedules", o.Schedules)
	return b.Bytes()
}

func writeLayers(b *bytes.Buffer, section string, layers map[string]settings.Layer) {
	if len(layers) == 0 {
		return
	}
	b.WriteString(section + ":\n")
	for _, name := range slices.Sorted(maps.Keys(layers)) {
		fmt.Fprintf(b, "  %q:\n", name)
		writeLayer(b, "    ", layers[name])
	}
}

func writeLayer(b *bytes.Buffer, indent string, l settings.Layer) {
	for _, name := range slices.Sorted(maps.Keys(l)) {
		fmt.Fprintf(b, "%s%s: %q\n", indent, name, l[name])
	}
}

// oneLine keeps a name from ending the comment that it stands in.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, text)
}

// replace writes beside the file and renames, so that there is the old or the new one whatever happens.
func replace(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".settings-*") // which has the mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
