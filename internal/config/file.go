package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"
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
	values, err := parseFile(content, named)
	if err != nil {
		return fmt.Errorf("settings file %s: %w", path, err)
	}
	f.loaded = path
	ctx.AddResolver(fileResolver(values))
	return nil
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
type fileResolver map[string]string

// Validate accepts every model: unknown members were refused before.
func (fileResolver) Validate(*kong.Application) error { return nil }

// Resolve returns the file's value, unless the environment has one.
func (r fileResolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if _, set := environment(flag); set {
		return nil, nil
	}
	if v, ok := r[flag.Name]; ok {
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

// parseFile returns the settings of a file by name. A member that is not a
// setting is refused, and so is a folder's own file naming another folder.
func parseFile(content []byte, named bool) (map[string]string, error) {
	var root map[string]any
	if err := json.Unmarshal(content, &root); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	names, err := settings()
	if err != nil {
		return nil, err
	}
	if !named {
		names = slices.DeleteFunc(names, func(n string) bool { return n == "data" })
	}
	values := map[string]string{}
	return values, flatten(values, names, "", root)
}

// settings returns the names that a file may hold.
func settings() ([]string, error) {
	parser, err := kong.New(&Config{}, kong.NoDefaultHelp())
	if err != nil {
		return nil, fmt.Errorf("list the settings: %w", err)
	}
	var names []string
	for _, flag := range parser.Model.Flags {
		if flag.Name != "config" {
			names = append(names, flag.Name)
		}
	}
	return names, nil
}

// flatten adds the members of object to values, by their dotted names.
func flatten(values map[string]string, names []string, prefix string, object map[string]any) error {
	for member, value := range object {
		name := prefix + member
		if slices.Contains(names, name) {
			text, err := fileText(name, value)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			values[name] = text
			continue
		}
		inner, isObject := value.(map[string]any)
		isGroup := slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, name+".") })
		if !isGroup {
			return fmt.Errorf("%s is not a setting", name)
		}
		if !isObject {
			return fmt.Errorf("%s must be an object", name)
		}
		if err := flatten(values, names, name+".", inner); err != nil {
			return err
		}
	}
	return nil
}

// fileText writes a setting of the file as it would be written on the command
// line.
func fileText(name string, value any) (string, error) {
	if object, ok := value.(map[string]any); ok && name == plansName {
		text, err := json.Marshal(object)
		return string(text), err //nolint:wrapcheck // what was just read can be written
	}
	return flagText(value)
}

// flagText writes a JSON value as it would be written on the command line.
func flagText(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case []any:
		parts := make([]string, len(v))
		for i, element := range v {
			part, ok := element.(string)
			if !ok || strings.Contains(part, ",") {
				return "", errors.New("must be a list of strings without commas")
			}
			parts[i] = part
		}
		return strings.Join(parts, ","), nil
	default:
		return "", errors.New("must be a string, a number, true, false or a list of strings")
	}
}
