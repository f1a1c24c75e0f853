//go:build !linux

package main

import "syscall"

// dieWithParent can do nothing here: only Linux knows such a request. The children are still stopped on every orderly way
// out; only a kill -9 of this program leaves them running.
func dieWithParent(*syscall.SysProcAttr) {}
