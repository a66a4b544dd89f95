// Command hello is what the tests of testenv build: it says whether it was built with cgo.
package main

import (
	"fmt"
	"runtime/debug"
)

func main() {
	info, _ := debug.ReadBuildInfo()
	for _, setting := range info.Settings {
		if setting.Key == "CGO_ENABLED" {
			fmt.Println("hello, cgo", setting.Value)
		}
	}
}
