// Package top is the live full-screen view of a manager: its queues, its workers, and the few things one does to them at a glance.
//
// It owns the terminal while Run runs: the alternate screen, the keys and the mode, all of which it puts back on every way out, a
// panic in any of its goroutines included. The model (what is shown, what is selected, what a key does) and the view (which
// lines that is) are plain values and functions; only the changed lines are written. It is called by the command top, and stops at q, at
// Ctrl-C and when its context ends. It keeps no numbers but the last few seconds' counts, from which the rates are.
package top
