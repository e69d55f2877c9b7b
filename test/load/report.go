package main

import (
	"bufio"
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// report writes the figures as Markdown.
func (b *bench) report(ctx context.Context) ([]byte, error) {
	where, err := b.describe(ctx)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("# Benchmarks\n\nWritten by `make bench`; `make bench BENCH=full` adds the large folder. ")
	out.WriteString("The real server runs on a folder of its own, listens on 127.0.0.1 and shares the processors with the clients. ")
	fmt.Fprintf(&out, "Figures are medians of %d runs with the smallest and the largest; the baseline was measured in the same run.\n\n", b.runs)
	for _, line := range where {
		out.WriteString("- " + line + "\n")
	}
	out.WriteString("\n| what | goal | measured | met | server CPU | baseline |\n|---|---|---|---|---|---|\n")
	for _, r := range b.rows {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", r.what, r.goal, r.measured, r.met, r.cpu, r.baseline)
	}
	out.WriteString(explanation)
	return out.Bytes(), nil
}

const explanation = `
How to read it:

- *Queryable* ends when a query's ` + "`stored_through`" + ` has passed the last answer; the number of events is then counted with a query and must be exact.
- *Durable* means what it says: no answer leaves before the group that holds its events has been synced to disk.
- Server CPU is user and system time of the server's process, everything included: HTTP, decoding, deduplication, both stores and their background work.
- The raw append writes the bytes of the same request bodies to one file. It neither receives nor decodes nor deduplicates anything, and nothing can be queried afterwards.
- A dashboard asks for a trend, unique persons, a funnel and a breakdown, one after the other, and again a second later.
- A start ends when the server says that it listens. After each kill every acknowledged event is counted.
- Events are about 220 bytes of JSON with four properties, of 200,000 persons, spread over 40 hours.
`

// describe says what was measured and on what.
func (b *bench) describe(ctx context.Context) ([]string, error) {
	info, err := buildinfo.ReadFile(b.binary)
	if err != nil {
		return nil, fmt.Errorf("read build information: %w", err)
	}
	kernel, err := exec.CommandContext(ctx, "uname", "-srm").Output()
	if err != nil {
		return nil, fmt.Errorf("uname: %w", err)
	}
	libraries := map[string]string{
		"github.com/cockroachdb/pebble/v2": "Pebble", "github.com/duckdb/duckdb-go-bindings": "DuckDB bindings",
		"modernc.org/sqlite": "modernc SQLite", "github.com/go-json-experiment/json": "go-json-experiment",
	}
	var versions []string
	for _, module := range info.Deps {
		if name, ok := libraries[module.Path]; ok {
			versions = append(versions, name+" "+module.Version)
		}
	}
	load, err := loadAverage()
	if err != nil {
		return nil, err
	}
	lines := []string{
		time.Now().UTC().Format(time.DateOnly) + ", " + strings.TrimSpace(string(kernel)) + ", " + fileSystem(b.dir),
		fmt.Sprintf("%s, %d processors, %s of memory", cpuInfo("/proc/cpuinfo", "model name"), runtime.NumCPU(), cpuInfo("/proc/meminfo", "MemTotal")),
		info.GoVersion + ", " + strings.Join(versions, ", "),
		"load average at the end " + load,
	}
	if b.scale != 1 {
		lines = append(lines, fmt.Sprintf("a trial with %g of the amounts; these figures stand for nothing", b.scale))
	}
	return lines, nil
}

func loadAverage() (string, error) {
	content, err := os.ReadFile("/proc/loadavg")
	if errors.Is(err, fs.ErrNotExist) {
		return "unknown", nil
	}
	if err != nil {
		return "", fmt.Errorf("read load: %w", err)
	}
	return strings.Join(strings.Fields(string(content))[:3], " "), nil
}

// cpuInfo returns the first value of a name in a file of /proc.
func cpuInfo(path, name string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// fileSystem names the file system that a folder lies on: the mount point that
// is the longest beginning of its path.
func fileSystem(dir string) string {
	content, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return "unknown file system"
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "unknown file system"
	}
	best, kind := "", "unknown file system"
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || len(fields[1]) < len(best) {
			continue
		}
		if within, err := filepath.Rel(fields[1], dir); err == nil && filepath.IsLocal(within) {
			best, kind = fields[1], fields[2]
		}
	}
	return kind
}
