package worker

import (
	"context"
	"io"
	"strconv"
	"strings"
)

// What go-plugin asks of a runner besides starting and ending it.

// Diagnose adds nothing to go-plugin's errors: they are written anew, with what the process wrote.
func (r *processRunner) Diagnose(context.Context) string {
	return "" // failure adds what it wrote
}

// Stdout yields the first line that the process writes, which must be go-plugin's handshake.
func (r *processRunner) Stdout() io.ReadCloser { return r.stdout }

// Stderr yields nothing: the output is kept here.
func (r *processRunner) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name is the program's name in the configuration.
func (r *processRunner) Name() string { return r.cmd.Args[0] }

// ID is the process's number; empty before the start.
func (r *processRunner) ID() string {
	if r.cmd.Process == nil {
		return ""
	}
	return strconv.Itoa(r.cmd.Process.Pid)
}

// PluginToHost and HostToPlugin change nothing: both sides see the same file system.
func (r *processRunner) PluginToHost(network, address string) (hostNet, hostAddr string, err error) {
	return network, address, nil
}

// HostToPlugin is the counterpart of PluginToHost.
func (r *processRunner) HostToPlugin(network, address string) (pluginNet, pluginAddr string, err error) {
	return network, address, nil
}
