// Package upgrade keeps data folders as earlier releases have left them, each
// with a recorded conversation and what that release answered to questions
// about it, for the test that this release opens them and forgets nothing. The
// program in record makes one.
package upgrade

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/actionpulse/actionpulse/test/upgrade/conversation"
)

// Fixture is a data folder of an earlier release and what was said to it.
type Fixture struct {
	// Commit is the one that the release was built from.
	Commit string `json:"commit"`
	// RecordedAt is when the conversation ended, by the release's clock.
	RecordedAt time.Time `json:"recorded_at"`
	// Credentials are what init printed. They open this folder and nothing else.
	Credentials conversation.Credentials `json:"credentials"`
	// Said is the conversation, in order.
	Said []conversation.Exchange `json:"said"`
	// Seen are questions, and what the release answered after it had gone on
	// with a copy of the folder.
	Seen []conversation.Exchange `json:"seen"`
	// Waiting and Quarantined are how many items waited in the intake store when
	// the server was killed, and how many were set aside.
	Waiting     uint64 `json:"waiting"`
	Quarantined int    `json:"quarantined"`
}

// The files of a fixture.
const (
	conversationFile = "conversation.json"
	folderFile       = "folder.tar.zst"
)

// Save writes a fixture and the data folder that belongs to it into a folder.
func (f *Fixture) Save(dir, data string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("save a fixture: %w", err)
	}
	content, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return fmt.Errorf("save a fixture: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, conversationFile), append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("save a fixture: %w", err)
	}
	if err := pack(filepath.Join(dir, folderFile), data); err != nil {
		return fmt.Errorf("save a fixture: %w", err)
	}
	return nil
}

// pack writes a folder into an archive.
func pack(path, dir string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	compressed, err := zstd.NewWriter(file, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	return errors.Join(archive.AddFS(os.DirFS(dir)), archive.Close(), compressed.Close())
}

// Load reads a fixture and unpacks its data folder into data.
func Load(dir, data string) (*Fixture, error) {
	content, err := os.ReadFile(filepath.Join(dir, conversationFile))
	if err != nil {
		return nil, fmt.Errorf("load a fixture: %w", err)
	}
	f := &Fixture{}
	if err := json.Unmarshal(content, f); err != nil {
		return nil, fmt.Errorf("load a fixture: %w", err)
	}
	if err := unpack(filepath.Join(dir, folderFile), data); err != nil {
		return nil, fmt.Errorf("load a fixture: %w", err)
	}
	return f, nil
}

// unpack writes what an archive holds into a folder, for its owner only.
func unpack(path, dir string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	compressed, err := zstd.NewReader(file)
	if err != nil {
		return err
	}
	defer compressed.Close()
	archive := tar.NewReader(compressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unpackOne(filepath.Join(dir, filepath.Clean("/"+header.Name)), header, archive); err != nil {
			return err
		}
	}
}

func unpackOne(path string, header *tar.Header, content io.Reader) error {
	if header.FileInfo().IsDir() {
		return os.MkdirAll(path, 0o700)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(0o600))
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
