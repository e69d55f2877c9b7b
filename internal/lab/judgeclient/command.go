package judgeclient

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxOutput bounds what is kept of a command's output, in bytes.
const maxOutput = 64 << 10

// afterKill is how long the output of a killed command may still come: it could
// have left children that hold its pipes.
const afterKill = 2 * time.Second

// Command returns the subject that runs a command line. Its exit code, standard
// output and standard error are noted; what it prints also goes to copyTo, if
// that is not nil. On kill, its process group is killed with it, where the
// system has such.
func Command(args []string, copyTo io.Writer) Subject {
	return func(ctx context.Context, env []string) Exit {
		output := &head{}
		out := io.Writer(output)
		if copyTo != nil {
			out = io.MultiWriter(output, copyTo)
		}
		cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // running it is what was asked for
		cmd.Env = overlaid(os.Environ(), env)
		cmd.Stdout, cmd.Stderr = out, out
		cmd.WaitDelay = afterKill
		inOwnGroup(cmd)
		err := cmd.Run()
		exit := Exit{Known: ctx.Err() == nil, Output: output.String()}
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			exit.Code = failed.ExitCode()
		} else if err != nil {
			exit.Code = -1
			exit.Output += "\n" + err.Error()
		}
		return exit
	}
}

// overlaid adds variables to an environment, and takes those away that are
// named without a value.
func overlaid(base, env []string) []string {
	names := map[string]bool{}
	for _, line := range env {
		name, _, _ := strings.Cut(line, "=")
		names[name] = true
	}
	out := slices.DeleteFunc(slices.Clone(base), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return names[name]
	})
	for _, line := range env {
		if strings.Contains(line, "=") {
			out = append(out, line)
		}
	}
	return out
}

// head keeps the beginning of what is written to it.
type head struct {
	mu   sync.Mutex
	kept strings.Builder
}

func (t *head) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.Write(p[:min(len(p), maxOutput-min(maxOutput, t.kept.Len()))])
	return len(p), nil
}

func (t *head) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept.String()
}

// Attached is the subject of a client that somebody else has started: it only
// waits until its time is over.
func Attached(ctx context.Context, _ []string) Exit {
	<-ctx.Done()
	return Exit{}
}
