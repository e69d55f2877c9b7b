package httpapi

import (
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// docsTable lists the members of one object, those within it too.
type docsTable struct {
	Name string
	Rows []docsRow
}

// docsRow is one member, named from the top: events[].event_id.
type docsRow struct {
	Name, Type, Doc string
	Required        bool
}

// maxRows bounds a table, should a type hold itself.
const maxRows = 200

// tables shows a schema: one table, or one for each alternative.
func tables(r huma.Registry, s *huma.Schema) []docsTable {
	if s.OneOf == nil {
		if rows := appendRows(nil, r, s, ""); len(rows) > 0 {
			return []docsTable{{Name: schemaName(s), Rows: rows}}
		}
		return nil
	}
	var list []docsTable
	for _, one := range s.OneOf {
		list = append(list, tables(r, one)...)
	}
	return list
}

func schemaName(s *huma.Schema) string { return strings.TrimPrefix(s.Ref, schemaPrefix) }

// appendRows adds the members of s, those that are required first.
func appendRows(rows []docsRow, r huma.Registry, s *huma.Schema, prefix string) []docsRow {
	for s.Ref != "" {
		s = r.SchemaFromRef(s.Ref)
	}
	if s.Type == huma.TypeArray {
		return appendRows(rows, r, s.Items, prefix+"[]")
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	slices.SortStableFunc(names, func(a, b string) int {
		return rank(slices.Contains(s.Required, a)) - rank(slices.Contains(s.Required, b))
	})
	for _, name := range names {
		if len(rows) == maxRows {
			break
		}
		property := s.Properties[name]
		at := name
		if prefix != "" {
			at = prefix + "." + name
		}
		rows = append(rows, docsRow{Name: at, Type: typeName(property), Doc: property.Description, Required: slices.Contains(s.Required, name)})
		rows = appendRows(rows, r, property, at)
	}
	return rows
}

func rank(required bool) int {
	if required {
		return 0
	}
	return 1
}
