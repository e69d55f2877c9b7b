package privacy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/actionpulse/actionpulse/internal/atomicfile"
	"github.com/actionpulse/actionpulse/internal/id"
	"github.com/actionpulse/actionpulse/internal/jsonsyntax"
)

const (
	// ServerFile holds the id of the server whose folder it is: jobs that it has
	// begun are its own.
	ServerFile = "SERVER"
	// archiveSuffix ends the name of an archive, unfinishedSuffix that of one
	// that is being written.
	archiveSuffix    = ".jsonl"
	unfinishedSuffix = ".jsonl.new"
)

// Archives is the folder of exports: an archive is there whole or not at all.
type Archives struct {
	dir    string
	server [16]byte
}

// OpenArchives opens the folder, or makes it. Random is where the id of the
// server comes from, the first time.
func OpenArchives(dir string, random io.Reader) (*Archives, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the folder of exports: %w", err)
	}
	a := &Archives{dir: dir}
	path := filepath.Join(dir, ServerFile)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := io.ReadFull(random, a.server[:]); err != nil {
			return nil, fmt.Errorf("name the server: %w", err)
		}
		return a, atomicfile.Write(path, a.server[:])
	}
	if err == nil && len(content) != len(a.server) {
		err = fmt.Errorf("it has %d bytes instead of %d", len(content), len(a.server))
	}
	if err != nil {
		return nil, fmt.Errorf("read the id of the server: %w", err)
	}
	copy(a.server[:], content)
	return a, nil
}

// Server is the id of the server whose folder it is.
func (a *Archives) Server() [16]byte { return a.server }

func (a *Archives) path(jobID, suffix string) string { return filepath.Join(a.dir, jobID+suffix) }

func (a *Archives) open(jobID string) (*os.File, error) { return os.Open(a.path(jobID, archiveSuffix)) }

// remove removes what there is of a job's archive.
func (a *Archives) remove(jobID string) error {
	for _, suffix := range []string{archiveSuffix, unfinishedSuffix} {
		if err := os.Remove(a.path(jobID, suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove an archive: %w", err)
		}
	}
	return a.sync()
}

// sweep removes the archives of jobs that do not have one.
func (a *Archives) sweep(ctx context.Context, has func(ctx context.Context, jobID string) (bool, error)) error {
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		return fmt.Errorf("list the archives: %w", err)
	}
	for _, entry := range entries {
		jobID, _, _ := strings.Cut(entry.Name(), ".")
		if !id.Valid(jobID) {
			continue
		}
		kept, err := has(ctx, jobID)
		if err != nil {
			return err
		}
		if !kept {
			if err := a.remove(jobID); err != nil {
				return err
			}
		}
	}
	return nil
}

// sync makes changes of the folder last.
func (a *Archives) sync() error {
	dir, err := os.Open(a.dir)
	if err != nil {
		return fmt.Errorf("open the folder of exports: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync the folder of exports: %w", err)
	}
	return nil
}

// archive is one that is being written: an object on each line. Memory is
// bounded by the largest object.
type archive struct {
	folder *Archives
	jobID  string
	file   *os.File
	out    *bufio.Writer
	// guard returns nil, or why nothing may be written now.
	guard func() error
	bytes int64
	// checked is how many bytes had been written when the guard was asked.
	checked int64
	counts  map[string]int64
}

const (
	archiveBuffer = 256 << 10
	// guardEvery is how many bytes are written between two questions for room.
	guardEvery = 8 << 20
)

// create begins a job's archive anew.
func (a *Archives) create(jobID string, guard func() error) (*archive, error) {
	file, err := os.OpenFile(a.path(jobID, unfinishedSuffix), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make an archive: %w", err)
	}
	return &archive{
		folder: a, jobID: jobID, file: file, out: bufio.NewWriterSize(file, archiveBuffer), guard: guard,
		checked: -guardEvery, counts: map[string]int64{},
	}, nil
}

// emit writes an object, with its type as its first member.
func (w *archive) emit(kind string, object any) error {
	if w.bytes-w.checked >= guardEvery {
		if err := w.guard(); err != nil {
			return fmt.Errorf("write an archive: %w", err)
		}
		w.checked = w.bytes
	}
	text, err := jsonsyntax.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode a %s: %w", kind, err)
	}
	if len(text) < len("{}") || text[0] != '{' {
		return fmt.Errorf("a %s is not an object", kind)
	}
	begin := `{"type":"` + kind + `"`
	if len(text) > len("{}") {
		begin += ","
	}
	w.bytes += int64(len(begin) + len(text))
	w.counts[kind]++
	for _, part := range [][]byte{[]byte(begin), text[1:], {'\n'}} {
		if _, err := w.out.Write(part); err != nil {
			return fmt.Errorf("write an archive: %w", err)
		}
	}
	return nil
}

// finish puts the archive in its place, once all of it is on disk, and returns
// its length.
func (w *archive) finish() (int64, error) {
	if err := errors.Join(w.out.Flush(), w.file.Sync()); err != nil {
		return 0, fmt.Errorf("write an archive: %w", err)
	}
	if err := os.Rename(w.folder.path(w.jobID, unfinishedSuffix), w.folder.path(w.jobID, archiveSuffix)); err != nil {
		return 0, fmt.Errorf("finish an archive: %w", err)
	}
	return w.bytes, w.folder.sync()
}

// close closes the file, finished or not.
func (w *archive) close() error {
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("close an archive: %w", err)
	}
	return nil
}
