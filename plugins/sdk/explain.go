package sdk

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/drover-jobs/drover/protocol"
)

// description is the JSON form of the manifest that --describe prints.
type description struct {
	Name             string            `json:"name"`
	Version          string            `json:"version,omitempty"`
	Description      string            `json:"description,omitempty"`
	Slots            uint32            `json:"slots"`
	LockKey          []string          `json:"lock_key,omitempty"`
	PayloadSchema    json.RawMessage   `json:"payload_schema,omitempty"`
	DefaultLimits    map[string]string `json:"default_limits,omitempty"`
	ProtocolVersions []int             `json:"protocol_versions"`
}

// explain answers whoever started the program without being a manager. It returns done = false when a manager did.
func (p *Program) explain(arguments []string, byManager bool, out, errOut io.Writer) (code int, done bool) {
	ask := ""
	if len(arguments) > 0 {
		ask = arguments[0]
	}
	switch {
	case p.err != nil:
		_, _ = fmt.Fprintf(errOut, "This worker cannot run: %v\n", p.err)
		return exitError, true
	case ask == "--describe":
		return p.describe(out, errOut), true
	case ask == "--help" || ask == "-h":
		_, _ = io.WriteString(out, p.help())
		return exitDone, true
	case !byManager:
		_, _ = io.WriteString(errOut, p.help())
		return exitError, true
	}
	return exitDone, false
}

// describe prints the manifest as JSON.
func (p *Program) describe(out, errOut io.Writer) int {
	m := p.manifest
	text, err := json.MarshalIndent(description{
		Name: m.GetName(), Version: m.GetVersion(), Description: m.GetDescription(), Slots: m.GetSlots(), LockKey: m.GetLockKey(),
		PayloadSchema: json.RawMessage(m.GetPayloadSchema()), DefaultLimits: m.GetDefaultLimits(), ProtocolVersions: []int{protocol.Version},
	}, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(out, "%s\n", text)
	}
	if err != nil {
		_, _ = fmt.Fprintf(errOut, "print the manifest: %v\n", err)
		return exitError
	}
	return exitDone
}

// help says what the program is and how to use it.
func (p *Program) help() string {
	m := p.manifest
	program, err := os.Executable()
	if err != nil {
		program = "/path/to/" + m.GetName()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s is a worker program of Drover: a manager starts it and gives it tasks. It does nothing by itself.\n\n", m.GetName())
	fmt.Fprintf(&b, "  name         %s\n", m.GetName())
	if m.GetVersion() != "" {
		fmt.Fprintf(&b, "  version      %s\n", m.GetVersion())
	}
	if m.GetDescription() != "" {
		fmt.Fprintf(&b, "  description  %s\n", m.GetDescription())
	}
	fmt.Fprintf(&b, "  slots        %d\n", m.GetSlots())
	if len(m.GetLockKey()) > 0 {
		fmt.Fprintf(&b, "  lock key     %s\n", strings.Join(m.GetLockKey(), ", "))
	}
	if m.GetPayloadSchema() != "" {
		fmt.Fprintf(&b, "  payload      %s\n", m.GetPayloadSchema())
	} else {
		b.WriteString("  payload      any JSON object\n")
	}
	fmt.Fprintf(&b, "\nTo use it, add the program and a queue to the manager's configuration, and make the manager read it\n(`drover reload`, or SIGHUP):\n\n"+
		"  plugins:\n    %[1]s:\n      command: [%[2]q]\n"+
		"  queues:\n    %[1]s:\n      plugin: %[1]s\n\n"+
		"Then submit a task:\n\n  drover submit %[1]s '{...}' --wait\n\n"+
		"With --describe the program prints what it says of itself as JSON.\n", m.GetName(), program)
	return b.String()
}
