package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json/jsontext"
)

// FileName is the file that is read from the data folder when no other is
// named.
const FileName = "config.json"

// BeforeResolve makes the command line parser read the settings file: the one
// that is named, or the one in the data folder if there is one. A setting
// that a flag or the environment gives is not taken from the file.
func (f *Folder) BeforeResolve(ctx *kong.Context) error {
	path, named := text(ctx, "config"), true
	if path == "" {
		path, named = filepath.Join(text(ctx, "data"), FileName), false
	}
	content, err := os.ReadFile(path)
	if !named && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("settings file: %w", err)
	}
	values, faults := parseFile(content, named)
	f.loaded, f.fromFile = path, map[string]bool{}
	if len(faults) > 0 {
		for i, fault := range faults {
			faults[i] = f.inFile(fault)
		}
		return errors.Join(faults...)
	}
	ctx.AddResolver(fileResolver{values: values, used: f.fromFile})
	return nil
}

func (f *Folder) inFile(fault error) error {
	return fmt.Errorf("settings file %s: %w", f.loaded, fault)
}

// locate says of the faults of settings that the file has given that they are
// there. It returns nil for nil.
func (f *Folder) locate(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var located []error
		for _, one := range all.Unwrap() {
			located = append(located, f.locate(one))
		}
		return errors.Join(located...)
	}
	if fault, ok := errors.AsType[*settingError](err); ok && f.fromFile[fault.name] {
		return f.inFile(err)
	}
	return err
}

// text returns what a flag holds before the file is read.
func text(ctx *kong.Context, name string) string {
	for _, flag := range ctx.Flags() {
		if flag.Name == name {
			return fmt.Sprint(ctx.FlagValue(flag))
		}
	}
	return ""
}

// fileResolver gives the parser what the file says, in the form of a flag.
type fileResolver struct {
	values map[string]string
	// used are the settings that were taken from the file.
	used map[string]bool
}

// Validate accepts every model: unknown members were refused before.
func (fileResolver) Validate(*kong.Application) error { return nil }

// Resolve returns the file's value, unless the environment has one.
func (r fileResolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if _, set := environment(flag); set {
		return nil, nil
	}
	if v, ok := r.values[flag.Name]; ok {
		r.used[flag.Name] = true
		return v, nil
	}
	return nil, nil
}

// environment returns the variable that gives a flag its value, if one does.
func environment(flag *kong.Flag) (string, bool) {
	for _, name := range flag.Envs {
		if _, ok := os.LookupEnv(name); ok {
			return name, true
		}
	}
	return "", false
}

// parseFile returns the settings of a file by name, or every fault of it. A
// member that is not a setting is one, and so is a folder's own file that names
// another folder.
func parseFile(content []byte, named bool) (map[string]string, []error) {
	root, err := readJSON(content)
	if err != nil {
		return nil, []error{err}
	}
	names, err := settings()
	if err != nil {
		return nil, []error{err}
	}
	if !named {
		delete(names, "data")
	}
	r := fileReader{settings: names, values: map[string]string{}}
	r.read("", root)
	return r.values, r.faults
}

// settings returns the names that a file may hold, and what kind of value each
// takes.
func settings() (map[string]reflect.Type, error) {
	parser, err := kong.New(&Config{}, kong.NoDefaultHelp())
	if err != nil {
		return nil, fmt.Errorf("list the settings: %w", err)
	}
	names := map[string]reflect.Type{}
	for _, flag := range parser.Model.Flags {
		if flag.Name != "config" {
			names[flag.Name] = flag.Target.Type()
		}
	}
	return names, nil
}

// fileReader reads the settings of a file, and goes on after a fault.
type fileReader struct {
	settings map[string]reflect.Type
	values   map[string]string
	faults   []error
}

// read adds the members of a group of settings, of which prefix is empty or
// ends with a dot.
func (r *fileReader) read(prefix string, group map[string]jsontext.Value) {
	for _, member := range slices.Sorted(maps.Keys(group)) {
		name, value := prefix+member, group[member]
		switch kind, isSetting := r.settings[name]; {
		case isSetting:
			r.setting(name, kind, value)
		case len(r.below(name+".")) == 0:
			r.faults = append(r.faults, fmt.Errorf("%s is not a setting; there are %s", shorten(name), strings.Join(r.below(prefix), ", ")))
		default:
			inner, err := readObject(value)
			if err != nil {
				r.faults = append(r.faults, wrong(name, "must be an object with some of %s, not %s", strings.Join(r.below(name+"."), ", "), kindOf(value)))
				continue
			}
			r.read(name+".", inner)
		}
	}
}

// below lists the settings and groups whose names go on after prefix.
func (r *fileReader) below(prefix string) (names []string) {
	for name := range r.settings {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			group, _, _ := strings.Cut(rest, ".")
			names = append(names, prefix+group)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// setting adds one setting, as it would be written on the command line.
func (r *fileReader) setting(name string, kind reflect.Type, value jsontext.Value) {
	text, faults := fileText(name, kind, value)
	if _, twice := r.values[name]; twice {
		faults = append(faults, wrong(name, "is given twice"))
	}
	r.values[name] = text
	r.faults = append(r.faults, faults...)
}
