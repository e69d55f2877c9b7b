package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
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
	if code != exitOK || stderr != "" || !strings.Contains(stdout, "holds secrets") || !strings.Contains(stdout, "actionpulse restore --from "+out) || strings.Contains(stdout, "visible again") {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	code, stdout, stderr = invoke(t, "restore", "--from", out, "--data", restored)
	if code != exitOK || stderr != "" || !strings.Contains(stdout, "Restored "+restored) || !strings.Contains(stdout, "The stores agree.") {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	if code, _, stderr := invoke(t, "verify", "--data", restored); code != exitOK {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if code, _, stderr := invoke(t, "restore", "--from", out, "--data", filepath.Join(dir, "other"), "--replay.blobs", "s3://bucket"); code != exitRefused || !strings.Contains(stderr, "--replay.blobs") {
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
	for _, args := range [][]string{{"backup", "--data", data}, {"restore", "--data", restored}, {"restore", "--from", out, "--database", "mysql://h"}, {"restore", "--from", out, "--replay.blobs", "ftp://h"}} {
		if code, _, _ := invoke(t, args...); code != exitUsage {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}

// What a signal has stopped says so by its exit code, and can be done again.
func TestBackupAndRestoreInterrupted(t *testing.T) {
	t.Parallel()
	data, _ := initialise(t)
	out, restored := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored")
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"backup", "--data", data, "--out", out}, {"restore", "--from", out, "--data", restored}} {
		var stderr strings.Builder
		code := run(stopped, args, streams{strings.NewReader(""), io.Discard, &stderr})
		if code != exitInterrupted || !strings.Contains(stderr.String(), "again") {
			t.Errorf("%v: exit %d, %q", args, code, stderr.String())
		}
		if code, _, stderr := invoke(t, args...); code != exitOK {
			t.Errorf("%v again: exit %d, %q", args, code, stderr)
		}
	}
}

// A difference that was backed up is printed, and keeps no server from starting.
func TestRestoreOfWhatDiffers(t *testing.T) {
	data, made := initialise(t)
	dir := t.TempDir()
	out, restored := filepath.Join(dir, "backup"), filepath.Join(dir, "restored")
	url, stop := serving(t, data)
	for n := range 2 {
		body := fmt.Sprintf(`{"session_id":"s","chunk":%d,"user_id":"u","events":[{"type":4,"timestamp":1777000000000}]}`, n)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/replay", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+made.ServerKey)
		answer, err := http.DefaultClient.Do(request)
		if err != nil || answer.StatusCode != http.StatusAccepted || answer.Body.Close() != nil {
			t.Fatal(answer, err)
		}
	}
	stop()
	blobs, err := filepath.Glob(filepath.Join(data, "replays", "*", "*", "*.zst"))
	if err != nil || len(blobs) != 2 {
		t.Fatal(blobs, err)
	}
	if err := os.Remove(blobs[0]); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := invoke(t, "backup", "--data", data, "--out", out)
	if code != exitOK || !strings.Contains(stderr, "1 chunks of session replays are lost") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	code, stdout, stderr := invoke(t, "restore", "--from", out, "--data", restored)
	if code != exitFailure || !strings.Contains(stdout, "Restored "+restored) || !strings.Contains(stdout, `of the replay "`) || !strings.Contains(stderr, "differ") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	_, stop = serving(t, restored)
	if code := stop(); code != exitOK {
		t.Errorf("exit %d", code)
	}
}
