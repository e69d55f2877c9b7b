package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// errWrong says that the product's own form has given wrong answers.
var errWrong = errors.New("the product's own form gave wrong answers")

// raceReport counts wrong answers, and measures nothing.
func raceReport(ctx context.Context, engines []engine, rounds int, out io.Writer) error {
	fmt.Fprintf(out, `Wrong answers to %d equal requests at once, with one key, for the whole balance of an account; %d keys.
Exactly one may be charged, and all must hear of its success; another price under the key must be refused;
a server that starts anew on the same database must still know.

`, together, rounds)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "form\tengine\tcharged twice\trefused although charged\tother price let through\tforgotten\t")
	var errs []error
	for _, e := range engines {
		for _, f := range slices.DeleteFunc(forms(), func(f form) bool { return !f.races }) {
			w, err := countRaces(ctx, e, f, rounds)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", f.name, e.name, err)
			}
			fmt.Fprintf(table, "%s\t%s\t%d of %d\t%d of %d\t%d of %d\t%d of %d\t\n", f.name, e.name,
				w.doubled, w.rounds, w.denied, w.rounds*together, w.confused, w.rounds, w.forgotten, w.rounds)
			if f.books && w != (wrong{rounds: w.rounds}) {
				errs = append(errs, fmt.Errorf("%w on %s", errWrong, e.name))
			}
		}
	}
	return errors.Join(append(errs, table.Flush())...)
}

func countRaces(ctx context.Context, e engine, f form, rounds int) (wrong, error) {
	db, err := e.open(ctx)
	if err != nil {
		return wrong{}, err
	}
	defer db.close()
	return countWrong(ctx, f, db, rounds)
}
