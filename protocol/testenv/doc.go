// Package testenv is for the tests of this module only: it starts the real servers that they talk to and builds
// the programs that they run.
//
// It owns a redis-server or memcached from its start to the end of the test that asked for it: a private
// directory with a short path, a loopback port or a Unix socket that no other test uses, the wait until the
// server answers, and the kill. It does not own clients, keys or what the servers hold, and it never touches a
// server that it did not start: a port counts as ready only when the process behind it is the one started here.
//
// Callers are _test.go files of every folder (the layout test allows no other). Everything stops in the
// test's own Cleanup, and a test process that dies takes its servers with it.
package testenv
