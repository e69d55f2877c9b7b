package template

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
)

var errOverflow = errors.New("a whole number leaves the range of 64 bits")

// add adds numbers and joins texts.
func add(_ *run, args []any) (any, error) {
	a, isText := args[0].(string)
	if b, ok := args[1].(string); ok && isText {
		return a + b, nil
	}
	return compute("+", args, total, func(x, y float64) float64 { return x + y })
}

func subtract(_ *run, args []any) (any, error) {
	return compute("-", args, difference, func(x, y float64) float64 { return x - y })
}

func multiply(_ *run, args []any) (any, error) {
	return compute("*", args, product, func(x, y float64) float64 { return x * y })
}

func total(x, y int64) (int64, bool) {
	result := x + y
	return result, (result > x) == (y > 0)
}

func difference(x, y int64) (int64, bool) {
	result := x - y
	return result, (result < x) == (y > 0)
}

func product(x, y int64) (int64, bool) {
	high, low := bits.Mul64(magnitude(x), magnitude(y))
	negative := (x < 0) != (y < 0)
	switch {
	case high != 0 || low > 1<<63 || low == 1<<63 && !negative:
		return 0, false
	case negative:
		return int64(-low), true
	default:
		return int64(low), true
	}
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// compute keeps whole numbers whole: one that does not fit is an error, and
// never another number.
func compute(operator string, args []any, exact func(x, y int64) (int64, bool), floating func(x, y float64) float64) (any, error) {
	x, isWhole := whole(args[0])
	y, bothWhole := whole(args[1])
	if isWhole && bothWhole {
		result, ok := exact(x, y)
		if !ok {
			return nil, errOverflow
		}
		return result, nil
	}
	a, isNumber := float(args[0])
	b, bothNumbers := float(args[1])
	if !isNumber || !bothNumbers {
		return nil, fmt.Errorf("%s %s %s has no meaning", kindOf(args[0]), operator, kindOf(args[1]))
	}
	return floating(a, b), nil
}

func whole(value any) (int64, bool) {
	switch v := value.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	default:
		return 0, false
	}
}

func float(value any) (float64, bool) {
	if v, ok := value.(float64); ok {
		return v, true
	}
	v, ok := whole(value)
	return float64(v), ok
}

// kindOf names the kind of a value for messages.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a text"
	case int, int64, float64:
		return "a number"
	}
	switch reflect.ValueOf(value).Kind() {
	case reflect.Slice:
		return "a list"
	case reflect.Map:
		return "an object"
	default:
		return "what is not a value"
	}
}

// plain returns a value as [Encode] takes it, if the library made it: lists of
// one type, objects with keys of any type. What it holds may be shared.
func plain(value any) any {
	switch value.(type) {
	case nil, bool, string, int, int64, float64:
		return value
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = plain(v.Index(i).Interface())
		}
		return list
	case reflect.Map:
		members := make(map[string]any, v.Len())
		for _, key := range v.MapKeys() {
			members[fmt.Sprint(key.Interface())] = plain(v.MapIndex(key).Interface())
		}
		return members
	}
	return value
}

func asList(value any) ([]any, error) {
	if list, ok := value.([]any); ok {
		return list, nil
	}
	v := reflect.ValueOf(value)
	if value == nil || v.Kind() != reflect.Slice {
		return nil, fmt.Errorf("a list is wanted, not %s", kindOf(value))
	}
	list := make([]any, v.Len())
	for i := range list {
		list[i] = v.Index(i).Interface()
	}
	return list, nil
}

func asObject(value any) (map[string]any, error) {
	if members, ok := value.(map[string]any); ok {
		return members, nil
	}
	v := reflect.ValueOf(value)
	if value == nil || v.Kind() != reflect.Map {
		return nil, fmt.Errorf("an object is wanted, not %s", kindOf(value))
	}
	members := make(map[string]any, v.Len())
	for _, key := range v.MapKeys() {
		members[fmt.Sprint(key.Interface())] = v.MapIndex(key).Interface()
	}
	return members, nil
}
