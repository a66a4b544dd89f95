// Package line is the language that plugins/exec and the programs that it runs speak: one JSON object in a line, over the
// program's standard streams. PROTOCOL.md in plugins/exec is its description for the authors of such programs.
//
// It owns the form of the lines: writing the ones that go down, reading and bounding the ones that come up. It does not own
// the streams, the processes or what a message leads to; package bridge does. It starts nothing and keeps no state but that
// of a Reader. What comes up was written by others: every text is an answer, none is a panic.
package line
