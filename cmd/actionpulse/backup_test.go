package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBackupAndRestore(t *testing.T) {
	dir := t.TempDir()
	data, out, restored := filepath.Join(dir, "data"), filepath.Join(dir, "backup"), filepath.Join(dir, "restored")
	if code, _, stderr := invoke(t, "init", "--data", data); code != exitOK {
		t.Fatal(stderr)
	}
	code, stdout, stderr := invoke(t, "backup", "--data", data, "--out", out)
	if code != exitOK || stderr != "" || !strings.Contains(stdout, "holds secrets") || !strings.Contains(stdout, "actionpulse restore --from "+out) {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	code, stdout, stderr = invoke(t, "restore", "--from", out, "--data", restored)
	if code != exitOK || stderr != "" || !strings.Contains(stdout, "Restored "+restored) || !strings.Contains(stdout, "The stores agree.") {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	if code, _, stderr := invoke(t, "verify", "--data", restored); code != exitOK {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if err := os.Remove(filepath.Join(out, "MANIFEST.json")); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"not empty":       {"backup", "--data", data, "--out", out},
		"no whole backup": {"restore", "--from", out, "--data", filepath.Join(dir, "other")},
		"init":            {"backup", "--data", filepath.Join(dir, "nothing"), "--out", filepath.Join(dir, "other")},
	} {
		if code, stdout, stderr := invoke(t, args...); code != exitRefused || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %q, %q", args, code, stdout, stderr)
		}
	}
	for _, args := range [][]string{{"backup", "--data", data}, {"restore", "--data", restored}, {"restore", "--from", out, "--database", "mysql://h"}} {
		if code, _, _ := invoke(t, args...); code != exitUsage {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}
