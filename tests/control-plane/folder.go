package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	folderPrefix = "control-plane-"
	// ownerLock is held by the program that a run folder belongs to. A folder whose lock is free was left behind.
	ownerLock = "owner.lock"
	// keptLock takes its place in a folder that was asked to be kept, so that no later start takes it for a leftover.
	keptLock = "kept.lock"
)

// A runFolder holds everything that one control plane writes.
type runFolder struct {
	path string
	keep bool
	lock *fileLock
}

// newRunFolder creates the folder, at path if one is given and under the system's folder for temporary files otherwise.
func newRunFolder(path string, keep bool) (*runFolder, error) {
	removeLeftovers(os.TempDir())
	var err error
	if path == "" {
		path, err = os.MkdirTemp("", folderPrefix)
	} else if path, err = filepath.Abs(path); err == nil {
		err = claim(path)
	}
	if err != nil {
		return nil, err
	}
	name := ownerLock
	if keep {
		name = keptLock
	}
	// Locked before it has its name: nobody ever sees an unlocked owner.lock in a folder that is in use.
	lock, err := tryLock(filepath.Join(path, name+".new"))
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := os.Rename(filepath.Join(path, name+".new"), filepath.Join(path, name)); err != nil {
		return nil, err
	}
	return &runFolder{path, keep, lock}, nil
}

// claim makes sure that path is a folder that nobody uses and that holds nothing worth keeping.
func claim(path string) error {
	for _, name := range []string{ownerLock, keptLock} {
		lock, err := tryExistingLock(filepath.Join(path, name))
		if errors.Is(err, errLocked) {
			return fmt.Errorf("%s is in use by another control plane (process %s)\nstop that one, or choose another --dir", path, lockOwner(filepath.Join(path, name)))
		}
		if err == nil {
			lock.release()
		}
	}
	if err := removeLeftover(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	content, err := os.ReadDir(path)
	if err == nil && len(content) > 0 {
		return fmt.Errorf("%s is not empty\nremove it, or choose another --dir", path)
	}
	return err
}

func (f *runFolder) file(name string) string { return filepath.Join(f.path, name) }

func (f *runFolder) write(name string, content []byte) error {
	return os.WriteFile(f.file(name), content, 0o600)
}

// close removes the folder unless it is to be kept.
func (f *runFolder) close() error {
	defer f.lock.release()
	if f.keep {
		return nil
	}
	return os.RemoveAll(f.path)
}

// removeLeftovers removes the folders of earlier starts that were killed before they could. Their processes are gone: they
// die with the program (see process.go).
func removeLeftovers(parent string) {
	folders, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	for _, folder := range folders {
		removeLeftover(folder) // what cannot be removed is no reason not to start
	}
}

// removeLeftover removes a folder if it has an owner.lock that nobody holds.
func removeLeftover(folder string) error {
	lock, err := tryExistingLock(filepath.Join(folder, ownerLock))
	if err != nil {
		return err
	}
	defer lock.release()
	return os.RemoveAll(folder)
}
