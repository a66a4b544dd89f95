// Package scaffold writes the directory of a new worker: a small program that works, its schema, a README, and for Go the module
// and a test.
//
// It owns the templates and the files that it makes, and overwrites nothing. It does not own the configuration: it says what to paste
// there. Its caller is the console's command `plugin new`. Write starts nothing and returns when all is written.
package scaffold
