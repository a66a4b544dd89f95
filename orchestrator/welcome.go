package orchestrator

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/drover-jobs/drover/orchestrator/internal/catalog"
)

// Welcome writes where the manager listens, which plugins it found and what to type next. It may be called once Up is closed.
func (o *Orchestrator) Welcome(w io.Writer) {
	var b strings.Builder
	fmt.Fprintf(&b, "\nDrover manager %q is up.\n", o.config.Manager.Name)
	fmt.Fprintf(&b, "  console   %s\n  workers   %s\n  broker    %s\n", o.config.Manager.Socket, o.config.Manager.PluginSocket, o.brokerName())
	plugins := o.catalog.All()
	slices.SortFunc(plugins, func(a, b catalog.Plugin) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range plugins {
		if p.Err != nil {
			fmt.Fprintf(&b, "  plugin    %s: NOT USABLE: %v\n", p.Name, p.Err)
			continue
		}
		fmt.Fprintf(&b, "  plugin    %s %s: %s\n", p.Name, p.Manifest.GetVersion(), p.Manifest.GetDescription())
	}
	names := make([]string, 0, len(o.config.Queues))
	for name := range o.config.Queues {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(&b, "  queues    %s\n\nNext, in another terminal:\n  bin/drover status\n", strings.Join(names, ", "))
	if slices.Contains(names, "feed-pull") {
		b.WriteString("  bin/drover submit feed-pull url=https://go.dev/blog/feed.atom --wait\n")
	}
	b.WriteString("Ctrl-C stops it and loses nothing.\n\n")
	_, _ = io.WriteString(w, b.String())
}
