// Package terminal is the terminal that a person sits at: what is typed, its size, and its modes.
//
// It owns the one goroutine that reads the terminal, so that a prompt and the commands it runs never read against each other. It
// draws nothing. The main program makes it, the prompt and the full-screen view use it. What was changed about the terminal is
// put back by the function that came with the change; the process's end does the rest.
package terminal
