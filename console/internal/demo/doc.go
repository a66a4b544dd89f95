// Package demo shows the whole path of Drover to a newcomer, and proves it: a site, a manager, feeds pulled by plugin
// processes, workers that die, a clean stop. Every step says what it shows and checks what came.
//
// It owns a small web site on the loopback network, a temporary state directory, and one manager process from its start to its
// end. It touches no other manager and no file of the working directory but to read. Command drover-demo calls Run, which returns
// when everything that it started is gone, also when its context ends early.
package demo
