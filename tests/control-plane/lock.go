package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// errLocked: another process holds the lock.
var errLocked = errors.New("locked")

// A fileLock is held for as long as its file is open. The kernel lets go of it when the owner dies, however it dies, so
// unlike a recorded process id it can neither be left behind nor be mistaken for an unrelated process with the same id.
// The id inside the file is for messages only.
type fileLock struct{ file *os.File }

// tryLock takes the lock, or returns errLocked at once.
func tryLock(path string) (*fileLock, error) { return lockFile(path, os.O_CREATE) }

// tryExistingLock does so if there is such a file.
func tryExistingLock(path string) (*fileLock, error) { return lockFile(path, 0) }

func lockFile(path string, create int) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|create, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	lock := &fileLock{file}
	err = file.Truncate(0)
	if err == nil {
		_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		lock.release()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return lock, nil
}

// waitForLock takes the lock as soon as it is free, and calls waiting once, with the owner's process id, if it is not.
func waitForLock(ctx context.Context, path string, waiting func(owner string)) (*fileLock, error) {
	told := false
	for {
		lock, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return lock, err
		}
		if !told {
			told = true
			waiting(lockOwner(path))
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// lockOwner is the process id that the owner of the lock wrote into it, for messages.
func lockOwner(path string) string {
	text, _ := os.ReadFile(path)
	if owner := strings.TrimSpace(string(text)); owner != "" {
		return owner
	}
	return "unknown"
}

func (l *fileLock) release() { l.file.Close() }
