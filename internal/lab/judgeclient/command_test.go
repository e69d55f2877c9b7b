package judgeclient_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/actionpulse/actionpulse/internal/lab/judgeclient"
)

// TestCommand: the environment is that of the lab, less what is taken away;
// exit code and output are kept, of much output the beginning.
func TestCommand(t *testing.T) {
	t.Setenv("LAB_TAKEN_AWAY", "1")
	t.Setenv("LAB_CHANGED", "old")
	script := `echo "$LAB_CHANGED ${LAB_TAKEN_AWAY-gone}"; head -c 100000 /dev/zero | tr '\0' x >&2; exit 7`
	exit := judgeclient.Command([]string{"sh", "-c", script}, nil)(t.Context(), []string{"LAB_CHANGED=new", "LAB_TAKEN_AWAY"})
	if !exit.Known || exit.Code != 7 || !strings.HasPrefix(exit.Output, "new gone\nxxx") || len(exit.Output) != 64<<10 {
		t.Errorf("%+v", exit)
	}
	exit = judgeclient.Command([]string{"/nonexistent"}, nil)(t.Context(), nil)
	if exit.Code == 0 || exit.Output == "" {
		t.Errorf("%+v", exit)
	}
}

// TestCommandKilled: what the command has started dies with it.
func TestCommandKilled(t *testing.T) {
	t.Parallel()
	ctx, kill := context.WithCancel(t.Context())
	started := filepath.Join(t.TempDir(), "started")
	pipe := started + ".pipe"
	script := `mkfifo "$PIPE"; (: > "$STARTED"; cat "$PIPE") & wait`
	done := make(chan judgeclient.Exit, 1)
	go func() {
		done <- judgeclient.Command([]string{"sh", "-c", script}, nil)(ctx, []string{"PIPE=" + pipe, "STARTED=" + started})
	}()
	for tick := time.Tick(5 * time.Millisecond); ; <-tick {
		if _, err := os.Stat(started); err == nil {
			break
		}
	}
	began := time.Now()
	kill()
	if exit := <-done; exit.Known {
		t.Errorf("%+v", exit)
	}
	// Had the child lived on, its hold on the output would have been waited for.
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Errorf("the kill took %v", took)
	}
}
