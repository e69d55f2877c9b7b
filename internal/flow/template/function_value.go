package template

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func toJSON(_ *run, args []any) (any, error) {
	encoded, err := Encode(plain(args[0]))
	return string(encoded), err
}

func fromJSON(_ *run, args []any) (any, error) {
	text, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("fromJSON takes a text, not %s", kindOf(args[0]))
	}
	value, err := Decode([]byte(text))
	if err != nil {
		return nil, errors.New("the text is not JSON")
	}
	return value, nil
}

func replace(r *run, args []any) (any, error) {
	text, old, err := twoTexts(args)
	if err != nil {
		return nil, err
	}
	with, ok := args[2].(string)
	if !ok {
		return nil, fmt.Errorf("replace takes texts, not %s", kindOf(args[2]))
	}
	if err := r.spend(strings.Count(text, old) * (1 + len(with)/bytesPerCost)); err != nil {
		return nil, err
	}
	return strings.ReplaceAll(text, old, with), nil
}

func repeat(r *run, args []any) (any, error) {
	text, ok := args[0].(string)
	times, isWhole := whole(args[1])
	if !ok || !isWhole || times < 0 || times > maxCost {
		return nil, errors.New("repeat takes a text and how often, which is not negative")
	}
	if err := r.spend(1 + int(times)*len(text)/bytesPerCost); err != nil {
		return nil, err
	}
	return strings.Repeat(text, int(times)), nil
}

func join(r *run, args []any) (any, error) {
	between := ""
	if len(args) == 2 {
		var ok bool
		if between, ok = args[1].(string); !ok {
			return nil, fmt.Errorf("join takes a text, not %s", kindOf(args[1]))
		}
	}
	list, err := asList(args[0])
	if err != nil {
		return nil, err
	}
	if err := r.spend(len(list) * (1 + len(between)/bytesPerCost)); err != nil {
		return nil, err
	}
	texts := make([]string, len(list))
	for i, one := range list {
		if texts[i], err = asText(plain(one)); err != nil {
			return nil, err
		}
	}
	return strings.Join(texts, between), nil
}

func uniq(_ *run, args []any) (any, error) {
	list, err := asList(args[0])
	if err != nil {
		return nil, err
	}
	seen, kept := map[string]bool{}, []any{}
	for _, one := range list {
		encoded, err := Encode(plain(one))
		if err != nil {
			return nil, err
		}
		if !seen[string(encoded)] {
			seen[string(encoded)] = true
			kept = append(kept, one)
		}
	}
	return kept, nil
}

func keys(_ *run, args []any) (any, error) {
	members, err := asObject(args[0])
	if err != nil {
		return nil, err
	}
	names := []any{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		names = append(names, name)
	}
	return names, nil
}

func values(_ *run, args []any) (any, error) {
	members, err := asObject(args[0])
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		list = append(list, members[name])
	}
	return list, nil
}

func toPairs(_ *run, args []any) (any, error) {
	members, err := asObject(args[0])
	if err != nil {
		return nil, err
	}
	pairs := []any{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		pairs = append(pairs, []any{name, members[name]})
	}
	return pairs, nil
}

func fromPairs(_ *run, args []any) (any, error) {
	pairs, err := asList(args[0])
	if err != nil {
		return nil, err
	}
	members := make(map[string]any, len(pairs))
	for _, one := range pairs {
		pair, err := asList(one)
		if err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, errors.New("a pair is a list of a name and a value")
		}
		name, ok := pair[0].(string)
		if !ok {
			return nil, fmt.Errorf("the name of a member is a text, not %s", kindOf(pair[0]))
		}
		members[name] = pair[1]
	}
	return members, nil
}
