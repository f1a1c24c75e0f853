package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestALockIsHeldOnceUntilItIsReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := tryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tryLock(path); !errors.Is(err, errLocked) {
		t.Errorf("locked twice: %v", err)
	}
	lock.release()
	again, err := tryLock(path)
	if err != nil {
		t.Fatalf("not released: %v", err)
	}
	again.release()
}

func TestAFolderIsRemovedAtTheEnd(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder, err := newRunFolder("", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.write("file", nil); err != nil {
		t.Fatal(err)
	}
	if err := folder.close(); err != nil || exists(folder.path) {
		t.Errorf("still there: %v", err)
	}
}

func TestTheNextStartRemovesWhatAKilledOneLeft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	start := func(keep bool) *runFolder {
		folder, err := newRunFolder("", keep)
		if err != nil {
			t.Fatal(err)
		}
		return folder
	}
	killed, kept, running := start(false), start(true), start(false)
	killed.lock.release() // all that happens at a kill -9: the kernel lets go of the lock
	kept.lock.release()
	foreign := filepath.Join(os.TempDir(), folderPrefix+"of-somebody-else")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}

	start(false)
	if exists(killed.path) {
		t.Error("the killed one's folder is still there")
	}
	if !exists(running.path) || !exists(kept.path) || !exists(foreign) {
		t.Error("a folder was removed that is in use, was to be kept, or is not ours")
	}
}

func TestAGivenFolderMustBeFree(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path := filepath.Join(t.TempDir(), "new", "folder")
	first, err := newRunFolder(path, false)
	if err != nil {
		t.Fatal(err)
	}
	inUse := func(path string) {
		t.Helper()
		if _, err := newRunFolder(path, false); err == nil || !strings.Contains(err.Error(), "is in use by another control plane") {
			t.Errorf("in use: %v", err)
		}
	}
	inUse(path)
	kept := filepath.Join(t.TempDir(), "kept")
	keeper, err := newRunFolder(kept, true)
	if err != nil {
		t.Fatal(err)
	}
	inUse(kept)
	keeper.lock.release()
	first.lock.release() // killed
	second, err := newRunFolder(path, false)
	if err != nil {
		t.Fatalf("left behind: %v", err)
	}
	if err := second.close(); err != nil {
		t.Fatal(err)
	}

	path = t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newRunFolder(path, false); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("somebody's files: %v", err)
	}
	if !exists(filepath.Join(path, "thesis.tex")) {
		t.Error("somebody's files were removed")
	}
}
