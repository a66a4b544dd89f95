// Package screen turns what others wrote into text that a terminal may show: escaped, measured, aligned and shortened.
//
// It owns the look of things: tables, fields, durations, sizes, colours, the line that shows progress, and the JSON for scripts.
// It does not know what a task or a queue is. The commands call it. It starts nothing and holds nothing but the line
// that a Progress has drawn, which Clear takes away.
package screen
