package main

import (
	"os"
	"testing"
)

// Some tests need this program as a process of its own: one that can be killed, or whose input can end. They run the test
// binary again with this variable set to what it should be.
const actAs = "CONTROL_PLANE_TEST_ACT_AS"

var actors = map[string]func(){"program": main}

func TestMain(m *testing.M) {
	if act := actors[os.Getenv(actAs)]; act != nil {
		act()
		return
	}
	os.Exit(m.Run())
}
