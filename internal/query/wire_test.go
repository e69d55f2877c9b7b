package query

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/actionpulse/actionpulse/api"
)

// members returns the JSON names of a struct, sorted.
func members(t reflect.Type) []string {
	var names []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			names = append(names, members(field.Type)...)
		case name != "":
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestDocumentedMembers: the types that document queries and their answers
// have the members that are read and written, no more and no fewer.
func TestDocumentedMembers(t *testing.T) {
	for _, pair := range [][2]any{
		{api.TrendQuery{}, trendRequest{}},
		{api.BreakdownQuery{}, breakdownRequest{}},
		{api.FunnelQuery{}, funnelRequest{}},
		{api.FunnelQueryStep{}, stepClause{}},
		{api.RetentionQuery{}, retentionRequest{}},
		{api.EventsQuery{}, eventsRequest{}},
		{api.QueryFilter{}, whereClause{}},
		{api.TrendAnswer{}, trendAnswer{}},
		{api.TrendSeries{}, series{}},
		{api.TrendPoint{}, point{}},
		{api.BreakdownAnswer{}, breakdownAnswer{}},
		{api.BreakdownItem{}, group{}},
		{api.FunnelAnswer{}, funnelAnswer{}},
		{api.FunnelStep{}, funnelStep{}},
		{api.RetentionAnswer{}, retentionAnswer{}},
		{api.RetentionCohort{}, cohort{}},
		{api.EventsAnswer{}, eventsAnswer{}},
		{api.StoredEvent{}, eventItem{}},
	} {
		documented, used := members(reflect.TypeOf(pair[0])), members(reflect.TypeOf(pair[1]))
		if !slices.Equal(documented, used) || len(used) == 0 {
			t.Errorf("%T documents %v, but %T has %v", pair[0], documented, pair[1], used)
		}
	}
}
