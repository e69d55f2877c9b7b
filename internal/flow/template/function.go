package template

import (
	"fmt"
	"reflect"
	"unicode/utf8"
)

// function is one that this package gives to expressions. Those with the name
// of a function of the library take its place; the others stand for operators.
type function struct {
	least, most int
	// looks: it looks at one member only, and is charged for that. Others are
	// charged for all that they are given.
	looks bool
	do    func(r *run, args []any) (any, error)
}

var functions = map[string]function{
	"charge": {1, 1, false, func(_ *run, args []any) (any, error) { return args[0], nil }},
	"step":   {1, 1, true, func(r *run, args []any) (any, error) { return r.scope.step(args[0].(string)), nil }},
	"get":    {2, 2, true, func(_ *run, args []any) (any, error) { return get(args[0], args[1]) }},
	"slice":  {3, 3, false, slice},

	"+": {2, 2, false, add}, "-": {2, 2, false, subtract}, "*": {2, 2, false, multiply}, "matches": {2, 2, false, matches},
	"..": {2, 2, false, span},

	"string": {1, 1, false, func(_ *run, args []any) (any, error) { return asText(plain(args[0])) }},
	"toJSON": {1, 1, false, toJSON}, "fromJSON": {1, 1, false, fromJSON},
	"replace": {3, 3, false, replace}, "repeat": {2, 2, false, repeat}, "join": {1, 2, false, join}, "uniq": {1, 1, false, uniq},
	"keys": {1, 1, false, keys}, "values": {1, 1, false, values}, "toPairs": {1, 1, false, toPairs}, "fromPairs": {1, 1, false, fromPairs},
}

func (f function) call(args ...any) (any, error) {
	r, args := args[0].(*run), args[1:] // the rewriter has put it there
	if len(args) < f.least || len(args) > f.most {
		return nil, fmt.Errorf("the function takes %d to %d arguments, not %d", f.least, f.most, len(args))
	}
	if err := r.spend(1); err != nil {
		return nil, err
	}
	if !f.looks {
		for _, one := range args {
			if err := r.charge(one, 0); err != nil {
				return nil, err
			}
		}
	}
	return f.do(r, args)
}

// get returns a member. One that is not there is null, and so is each member of
// null: what a step that was skipped has said is null as well.
func get(from, name any) (any, error) {
	switch v := from.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		if key, ok := name.(string); ok {
			return v[key], nil
		}
		return nil, fmt.Errorf("the name of a member is a text, not %s", kindOf(name))
	}
	switch v := reflect.ValueOf(from); v.Kind() {
	case reflect.Slice:
		return element(v, name)
	case reflect.Map:
		key := reflect.ValueOf(name)
		if name == nil || !key.Type().AssignableTo(v.Type().Key()) {
			return nil, nil
		}
		if found := v.MapIndex(key); found.IsValid() {
			return found.Interface(), nil
		}
		return nil, nil
	}
	return nil, fmt.Errorf("%s has no member %s", kindOf(from), shorten(fmt.Sprint(name)))
}

// element returns an element of a list; a negative index counts from its end.
func element(list reflect.Value, name any) (any, error) {
	at, ok := whole(name)
	if !ok {
		return nil, fmt.Errorf("the index of a list is a whole number, not %s", kindOf(name))
	}
	if at < 0 {
		at += int64(list.Len())
	}
	if at < 0 || at >= int64(list.Len()) {
		return nil, nil
	}
	return list.Index(int(at)).Interface(), nil
}

// slice cuts texts between characters, not within them.
func slice(_ *run, args []any) (any, error) {
	if args[0] == nil {
		return nil, nil
	}
	if text, ok := args[0].(string); ok {
		runes := []rune(text)
		from, to, err := bounds(len(runes), args[1], args[2])
		return string(runes[from:to]), err
	}
	v := reflect.ValueOf(args[0])
	if v.Kind() != reflect.Slice {
		return nil, fmt.Errorf("%s cannot be cut", kindOf(args[0]))
	}
	from, to, err := bounds(v.Len(), args[1], args[2])
	return v.Slice3(from, to, to).Interface(), err
}

func bounds(length int, from, to any) (int, int, error) {
	start, err := bound(length, from, 0)
	if err != nil {
		return 0, 0, err
	}
	end, err := bound(length, to, length)
	if err != nil {
		return 0, 0, err
	}
	return min(start, end), end, nil
}

func bound(length int, value any, absent int) (int, error) {
	if value == nil {
		return absent, nil
	}
	at, ok := whole(value)
	if !ok {
		return 0, fmt.Errorf("where to cut is a whole number, not %s", kindOf(value))
	}
	if at < 0 {
		at += int64(length)
	}
	return int(min(max(at, 0), int64(length))), nil
}

// span returns the whole numbers from one to another.
func span(r *run, args []any) (any, error) {
	from, ok := whole(args[0])
	to, bothWhole := whole(args[1])
	if !ok || !bothWhole {
		return nil, fmt.Errorf("%s .. %s has no meaning", kindOf(args[0]), kindOf(args[1]))
	}
	if to < from {
		return []any{}, nil
	}
	length, ok := difference(to, from)
	if !ok || length >= maxCost {
		return nil, errCost
	}
	if err := r.spend(int(length) + 1); err != nil {
		return nil, err
	}
	numbers := make([]any, length+1)
	for i := range numbers {
		numbers[i] = from + int64(i)
	}
	return numbers, nil
}

func matches(r *run, args []any) (any, error) {
	if args[0] == nil || args[1] == nil {
		return false, nil
	}
	text, source, err := twoTexts(args)
	if err != nil {
		return nil, err
	}
	// Small patterns take more than their length to compile.
	if err := r.spend(100 + len(source)); err != nil {
		return nil, err
	}
	pattern, err := CompilePattern(source)
	if err != nil {
		return nil, err
	}
	if err := r.spend(pattern.Size * (1 + len(text)/bytesPerCost)); err != nil {
		return nil, err
	}
	return pattern.MatchString(text), nil
}

func twoTexts(args []any) (string, string, error) {
	a, ok := args[0].(string)
	if !ok {
		return "", "", fmt.Errorf("a text is wanted, not %s", kindOf(args[0]))
	}
	b, ok := args[1].(string)
	if !ok {
		return "", "", fmt.Errorf("a text is wanted, not %s", kindOf(args[1]))
	}
	if !utf8.ValidString(a) || !utf8.ValidString(b) {
		return "", "", errUTF8
	}
	return a, b, nil
}
