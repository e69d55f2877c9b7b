package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	superuser    = "postgres"
	port         = "5432" // names the socket; nothing listens on the network
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
	// readyLine is what a server writes when it can be used.
	readyLine = "database system is ready to accept connections"
)

// server is a running PostgreSQL that only this process can find.
type server struct {
	folder string
	// settings are arguments beyond those of every server.
	settings []string
	proc     *os.Process
	ended    chan error // gets the one result of waiting for the process
}

func (s *server) url() *url.URL {
	q := url.Values{"host": {s.folder}, "port": {port}}
	return &url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/postgres", RawQuery: q.Encode()}
}

// StartDurable starts a server for measurements: it syncs every commit to disk,
// as servers do. It returns the server's URL and what stops it and removes its
// data.
func StartDurable() (address string, stop func() error, err error) {
	s, err := startServer()
	if err != nil {
		return "", nil, err
	}
	return s.url().String(), s.stop, nil
}

// forgetful are the settings of a server that syncs nothing to disk: its data
// does not outlive the tests.
var forgetful = []string{"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "deadlock_timeout=50ms"}

// startServer makes a database folder and starts a server on it.
func startServer(settings ...string) (*server, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	who, err := unprivileged()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "actionpulse-pg-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for PostgreSQL: %w", err)
	}
	s := &server{folder: folder, settings: settings, ended: make(chan error, 1)}
	if err := s.start(bin, who); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return s, nil
}

func (s *server) start(bin string, who *syscall.Credential) error {
	if who != nil {
		if err := os.Chown(s.folder, int(who.Uid), int(who.Gid)); err != nil {
			return fmt.Errorf("give the folder to PostgreSQL's user: %w", err)
		}
	}
	data := filepath.Join(s.folder, "data")
	ctx := context.Background() // both outlive the test that happens to be the first
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "--pgdata", data, "--username", superuser,
		"--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	initdb.Dir = s.folder
	initdb.SysProcAttr = attributes(who)
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("run initdb: %w\n%s", err, out)
	}
	arguments := append([]string{
		"-D", data, "-k", s.folder, "-p", port, "-c", "listen_addresses=", "-c", "max_connections=300",
		"-c", "lc_messages=C", "-c", "logging_collector=off",
	}, s.settings...)
	postgres := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), arguments...)
	postgres.Dir = s.folder
	postgres.SysProcAttr = attributes(who)
	return s.run(postgres)
}

// run starts the server and returns when it is ready.
func (s *server) run(postgres *exec.Cmd) error {
	stderr, err := postgres.StderrPipe()
	if err != nil {
		return fmt.Errorf("read what PostgreSQL writes: %w", err)
	}
	started := make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		// The kernel tells a child of its parent's death when the thread that
		// started it ends; this keeps that thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := postgres.Start(); err != nil {
			started <- err
			return
		}
		s.proc = postgres.Process
		started <- nil
		log := follow(stderr, ready)
		if err := postgres.Wait(); err != nil {
			s.ended <- fmt.Errorf("PostgreSQL ended: %w\n%s", err, log)
			return
		}
		s.ended <- nil
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	select {
	case <-ready:
		return nil
	case err := <-s.ended:
		return fmt.Errorf("PostgreSQL did not become ready: %w", err)
	case <-time.After(startTimeout):
		return errors.Join(fmt.Errorf("PostgreSQL was not ready after %s", startTimeout), s.stop())
	}
}

// follow reads what the server writes until its end, closes ready when it says
// that it is, and returns what it wrote before that.
func follow(stderr io.Reader, ready chan<- struct{}) string {
	var log strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		log.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), readyLine) {
			close(ready)
			break
		}
	}
	if _, err := io.Copy(io.Discard, stderr); err != nil {
		log.WriteString(err.Error() + "\n")
	}
	return log.String()
}

// stop ends the server at once and removes its folder.
func (s *server) stop() error {
	if err := s.proc.Signal(syscall.SIGQUIT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal PostgreSQL: %w", err)
	}
	select {
	case <-s.ended: //nolint:errcheck // an exit by SIGQUIT is what was asked for
	case <-time.After(stopTimeout):
		return fmt.Errorf("PostgreSQL did not stop within %s", stopTimeout)
	}
	if err := os.RemoveAll(s.folder); err != nil {
		return fmt.Errorf("remove PostgreSQL's folder: %w", err)
	}
	return nil
}

// findBinaries returns the folder with initdb and postgres: the newest that
// Debian's packages have installed, else what PATH finds.
func findBinaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", fmt.Errorf("look for PostgreSQL: %w", err)
	}
	if len(found) > 0 {
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
	}
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return "", errors.New("its programs are neither in /usr/lib/postgresql nor in PATH")
	}
	return filepath.Dir(initdb), nil
}

// version returns the N of /usr/lib/postgresql/N/bin/postgres, 0 when it is
// not a number.
func version(path string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	if err != nil {
		return 0
	}
	return n
}

// unprivileged returns whom to run the server as: it refuses to run as root.
// nil means as we are.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil is the answer
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, fmt.Errorf("find a user to run PostgreSQL as: %w", err)
		}
	}
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, fmt.Errorf("find a user to run PostgreSQL as: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
