package sqlstore

import (
	"math/bits"
	"strconv"
	"strings"
	"sync"
)

// Rows is a statement about many rows, such as an INSERT of all of them.
type Rows struct {
	// Text has {rows} where the rows stand; Each is one of them, with ? for
	// each of its parameters.
	Text, Each string
	// Shared are the parameters $1 and so on that Text and Each may name.
	Shared []any
	// Args has the parameters of each row.
	Args [][]any
	// Row is that of [Statement].
	Row func(scan func(dest ...any) error) error
}

// Statements returns what is to be run: statements about up to most rows each,
// in their order. The number of rows of each is a power of two, so that few
// texts have to be prepared.
func (r *Rows) Statements(most int) []Statement {
	var out []Statement
	for rest := r.Args; len(rest) > 0; {
		n := 1 << (bits.Len(uint(min(len(rest), most))) - 1)
		args := append(make([]any, 0, len(r.Shared)+n*len(rest[0])), r.Shared...)
		for _, row := range rest[:n] {
			args = append(args, row...)
		}
		out = append(out, Statement{Text: r.text(n), Args: args, Row: r.Row})
		rest = rest[n:]
	}
	return out
}

// texts are those that were written before.
var texts sync.Map

// textKey tells texts apart.
type textKey struct {
	text, each   string
	shared, rows int
}

// text writes the statement for a number of rows.
func (r *Rows) text(rows int) string {
	key := textKey{r.Text, r.Each, len(r.Shared), rows}
	if known, ok := texts.Load(key); ok {
		return known.(string) //nolint:forcetypeassert // nothing else is stored
	}
	var b strings.Builder
	parameter := len(r.Shared)
	for i := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		for part := range strings.SplitAfterSeq(r.Each, "?") {
			before, ends := strings.CutSuffix(part, "?")
			b.WriteString(before)
			if ends {
				parameter++
				b.WriteString("$" + strconv.Itoa(parameter))
			}
		}
	}
	text := strings.Replace(r.Text, "{rows}", b.String(), 1)
	texts.Store(key, text)
	return text
}
