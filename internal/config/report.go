package config

import (
	"fmt"
	"time"

	"github.com/alecthomas/kong"
)

// Where a value came from.
const (
	SourceDefault     = "default"
	SourceFile        = "file"
	SourceEnvironment = "environment"
	SourceFlag        = "flag"
)

// Setting is one value in force and where it came from.
type Setting struct {
	// Value is without secrets.
	Value  any    `json:"value"`
	Source string `json:"source"`
	// From names the variable or the file; empty for flags and defaults.
	From string `json:"from,omitempty"`
}

// Report returns every setting of the command that ctx parsed, by name.
func (f *Folder) Report(ctx *kong.Context) map[string]Setting {
	report := map[string]Setting{}
	for _, flag := range ctx.Flags() {
		if flag.Name == "help" {
			continue
		}
		source, from := f.origin(ctx, flag)
		report[flag.Name] = Setting{Value: display(flag.Target.Interface()), Source: source, From: from}
	}
	return report
}

// origin says where a flag's value came from.
func (f *Folder) origin(ctx *kong.Context, flag *kong.Flag) (source, from string) {
	for _, step := range ctx.Path {
		if step.Flag != flag {
			continue
		}
		if step.Resolved {
			return SourceFile, f.loaded
		}
		return SourceFlag, ""
	}
	if name, ok := environment(flag); ok {
		return SourceEnvironment, name
	}
	return SourceDefault, ""
}

// display gives a value the form it has in the settings file.
func display(value any) any {
	switch v := value.(type) {
	case time.Duration:
		return v.String()
	case fmt.Stringer:
		return v.String()
	default:
		return v
	}
}
