package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/actionpulse/actionpulse/internal/sendfile"
)

// stdinName stands for standard input among the files.
const stdinName = "-"

// sendInput is what send reads.
type sendInput struct {
	files   []string
	sources []sendfile.Source
	// read counts the bytes read, as they are on disk.
	read atomic.Int64
	// total is how many there are, -1 if that is not known.
	total int64
}

func newSendInput(files []string, stdin io.Reader) *sendInput {
	in := &sendInput{files: files}
	for _, name := range files {
		s := sendfile.Source{Name: name, Open: func() (io.ReadCloser, error) {
			f, err := os.Open(name)
			if err != nil {
				return nil, err
			}
			return countedInput{f, f, &in.read}, nil
		}}
		if name == stdinName {
			s = sendfile.Source{Name: "standard input", Open: func() (io.ReadCloser, error) {
				return countedInput{stdin, io.NopCloser(stdin), &in.read}, nil
			}}
		}
		in.sources = append(in.sources, s)
	}
	return in
}

// countedInput counts what is read of a file.
type countedInput struct {
	io.Reader
	io.Closer
	read *atomic.Int64
}

func (c countedInput) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// check finds files that cannot be opened, and columns that are missing,
// before anything is sent. Only regular files can be looked at twice; the
// others are judged when it is their turn.
func (in *sendInput) check(o sendfile.Options) error {
	var faults []error
	stdins := 0
	for i, name := range in.files {
		if name == stdinName {
			stdins++
			in.total = -1
			continue
		}
		size, err := checkFile(name, in.sources[i], o)
		faults = append(faults, err)
		switch {
		case size < 0:
			in.total = -1
		case in.total >= 0:
			in.total += size
		}
	}
	if stdins > 1 {
		faults = append(faults, errors.New("standard input can be read only once"))
	}
	in.read.Store(0)
	return errors.Join(faults...)
}

// checkFile returns a file's size, -1 if it is not a regular file.
func checkFile(name string, s sendfile.Source, o sendfile.Options) (size int64, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	if info.IsDir() {
		return 0, fmt.Errorf("%s is a directory", name)
	}
	if !info.Mode().IsRegular() {
		return -1, nil
	}
	f, err := s.Open()
	if err != nil {
		return 0, err
	}
	_, err = sendfile.NewReader(name, f, o)
	return info.Size(), errors.Join(err, f.Close())
}
