package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/actionpulse/actionpulse/internal/flow"
)

// flowCommand is what is done with flows.
type flowCommand struct {
	Validate flowValidate `cmd:"" help:"Check definitions of flows, without a server."`
	Push     flowPush     `cmd:"" help:"Publish a definition as a version of a flow."`
	Run      flowRun      `cmd:"" help:"Run a flow once, however often it takes to ask."`
}

// flowServer says which server is called, and as whom.
type flowServer struct {
	URL string `name:"url" env:"ACTIONPULSE_URL" default:"http://127.0.0.1:8080" placeholder:"URL" help:"Address of the server. Default: http://127.0.0.1:8080."`
	Key string `name:"key" env:"ACTIONPULSE_PROJECT_KEY" placeholder:"KEY" help:"Project key. Better in the environment, where other users do not see it."`
}

// client returns a client of the server. Its error is one of usage; it never
// repeats the key, nor a URL that may hold a password.
func (s *flowServer) client() (*flowClient, error) {
	if s.Key == "" {
		return nil, &exitError{exitUsage, errors.New("no project key: set ACTIONPULSE_PROJECT_KEY or --key")}
	}
	if !isWhole(s.Key) {
		return nil, &exitError{exitUsage, errors.New("the project key holds white space or control characters: was it copied whole?")}
	}
	if _, err := methodURL(s.URL); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return newFlowClient(s.URL, s.Key), nil
}

// maxFlowFile bounds what is read of a file: more than a server takes.
const maxFlowFile = 16 << 20

// readFlowFile reads a file, or standard input for -.
func readFlowFile(name string, stdin io.Reader) ([]byte, error) {
	if name == stdinName {
		return readBounded(stdin, "standard input")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := readBounded(f, name)
	return content, errors.Join(err, f.Close())
}

func readBounded(r io.Reader, name string) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxFlowFile+1))
	if err == nil && len(content) > maxFlowFile {
		err = errors.New("it is too large")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return content, nil
}

// formatOf is the form of a definition: what the file's name says, else JSON
// if it begins like an object of JSON.
func formatOf(name string, content []byte) flow.Format {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json":
		return flow.JSON
	case ".yaml", ".yml":
		return flow.YAML
	}
	if bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		return flow.JSON
	}
	return flow.YAML
}
