package template

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"unicode/utf8"
)

const (
	// maxCost is what one evaluation may read and make: about one for each
	// value and for every 16 bytes of text. It is used up in less than half a
	// second.
	maxCost = 2_000_000
	// lightCost is what an evaluation may cost that does not wait for others.
	lightCost = 50_000
	// maxBudget is what all evaluations of one execution may cost.
	maxBudget = 50 * maxCost
	// bytesPerCost is how much text counts like one value.
	bytesPerCost = 16
)

var (
	errCost   = errors.New("the expression does too much")
	errBudget = errors.New("the expressions of the execution do too much together")
)

// turns are who may evaluate something long at the moment.
var turns = make(chan struct{}, 1)

// run is one evaluation of a template.
type run struct {
	scope *Scope
	left  int
	// exceeded says that more was asked for than was left.
	exceeded bool
}

// spend takes from what the evaluation may still do.
func (r *run) spend(cost int) error {
	if cost < 0 || cost > r.left {
		r.left, r.exceeded = 0, true
		return errCost
	}
	r.left -= cost
	return nil
}

// charge spends what it costs to look at all of a value.
func (r *run) charge(value any, depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	switch v := value.(type) {
	case string:
		return r.spend(1 + len(v)/bytesPerCost)
	case []any:
		return r.chargeList(v, depth)
	case map[string]any:
		return r.chargeObject(v, depth)
	case nil, bool, int, int64, float64:
		return r.spend(1)
	default:
		return r.chargeOther(reflect.ValueOf(value), depth)
	}
}

func (r *run) chargeList(values []any, depth int) error {
	if err := r.spend(1); err != nil {
		return err
	}
	for _, one := range values {
		if err := r.charge(one, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) chargeObject(values map[string]any, depth int) error {
	if err := r.spend(1); err != nil {
		return err
	}
	for name, one := range values {
		if err := r.spend(len(name) / bytesPerCost); err != nil {
			return err
		}
		if err := r.charge(one, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// chargeOther is for what the functions of expressions make in between, such as
// lists of texts.
func (r *run) chargeOther(v reflect.Value, depth int) error {
	if err := r.spend(1); err != nil {
		return err
	}
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			if err := r.charge(v.Index(i).Interface(), depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if err := r.charge(v.MapIndex(key).Interface(), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// normal copies what an expression has given into values as [Decode] reads them.
func (r *run) normal(value any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	if err := r.spend(1); err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case nil, bool, int64:
		return v, nil
	case int:
		return int64(v), nil
	case float64:
		return number(v)
	case string:
		if !utf8.ValidString(v) {
			return nil, errUTF8
		}
		return v, r.spend(len(v) / bytesPerCost)
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Slice:
		return r.normalList(v, depth)
	case reflect.Map:
		return r.normalObject(v, depth)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Uint() <= math.MaxInt64 {
			return int64(v.Uint()), nil
		}
	case reflect.Int8, reflect.Int16, reflect.Int32:
		return v.Int(), nil
	}
	return nil, fmt.Errorf("the expression gives a %s, which is not a value", reflect.TypeOf(value).Kind())
}

func (r *run) normalList(v reflect.Value, depth int) (any, error) {
	values := make([]any, v.Len())
	for i := range values {
		one, err := r.normal(v.Index(i).Interface(), depth+1)
		if err != nil {
			return nil, err
		}
		values[i] = one
	}
	return values, nil
}

func (r *run) normalObject(v reflect.Value, depth int) (any, error) {
	values := make(map[string]any, v.Len())
	for _, key := range v.MapKeys() {
		name, err := asText(plain(key.Interface()))
		if err != nil {
			return nil, err
		}
		if _, ok := values[name]; ok {
			return nil, fmt.Errorf("two members of an object have the name %s", shorten(name))
		}
		if values[name], err = r.normal(v.MapIndex(key).Interface(), depth+1); err != nil {
			return nil, err
		}
	}
	return values, nil
}
