package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set when a release is built: -ldflags "-X main.version=1.2.3".
var version = ""

// versionCommand prints the version.
type versionCommand struct {
	JSON bool `name:"json" env:"-" help:"Print it as JSON."`
}

// buildVersion says what was built.
type buildVersion struct {
	Version string `json:"version"`
	// Commit is empty if the binary was not built in a repository; Modified
	// says that it holds more than the commit.
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readVersion() buildVersion {
	v := buildVersion{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v.Version == "" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	return v
}

// Run prints the version.
func (c *versionCommand) Run(std streams) error {
	v := readVersion()
	if c.JSON {
		return printJSON(std.stdout, v)
	}
	commit := v.Commit
	if commit == "" {
		commit = "unknown"
	}
	if v.Modified {
		commit += ", modified"
	}
	_, err := fmt.Fprintf(std.stdout, "actionpulse %s (commit %s, %s, %s)\n", v.Version, commit, v.Go, v.Platform)
	return err
}
