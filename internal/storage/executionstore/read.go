package executionstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/actionpulse/actionpulse/internal/execution"
	"github.com/actionpulse/actionpulse/internal/storage/sqldb"
)

// conditions is the WHERE of a query that is put together.
type conditions struct {
	text []string
	args []any
}

// add adds a condition; ? stands for the argument.
func (c *conditions) add(text string, arg any) {
	c.args = append(c.args, arg)
	c.text = append(c.text, strings.ReplaceAll(text, "?", "$"+strconv.Itoa(len(c.args))))
}

func (c *conditions) where() string { return " WHERE " + strings.Join(c.text, " AND ") }

// page ends with the argument of LIMIT.
func (c *conditions) page(order string, limit int) string {
	c.args = append(c.args, limit)
	return c.where() + " ORDER BY " + order + " LIMIT $" + strconv.Itoa(len(c.args))
}

// listBytes is how many bytes of outputs are read for one page.
const listBytes = 4 << 20

// errFull ends the reading of a page.
var errFull = errors.New("the page is full")

// List implements execution.ReadStore.
func (s *Store) List(ctx context.Context, q execution.ListQuery) (list []execution.Execution, more bool, err error) {
	var c conditions
	c.add("x.project_id = ?", q.ProjectID)
	if q.Key != "" {
		c.add("x.work_key = ?", q.Key)
	}
	if q.Flow != "" {
		c.add("f.slug = ?", q.Flow)
	}
	if q.Customer != "" {
		c.add("c.external_id = ?", q.Customer)
	}
	if q.Status != "" {
		c.add("x.status = ?", string(q.Status))
	}
	if q.Before != "" {
		c.add("x.id < ?", q.Before)
	}
	bytes := 0
	err = s.each(ctx, `SELECT `+executionColumns+executionTables+c.page("x.id DESC", q.Limit+1), c.args, func(scan func(...any) error) error {
		x, err := scanExecution(scan)
		bytes += len(x.Output)
		x.Input, x.Context = nil, nil
		if err == nil && len(list) > 0 && (bytes > listBytes || len(list) == q.Limit) {
			return errFull
		}
		list = append(list, x)
		return err
	})
	if err != nil && !errors.Is(err, errFull) {
		return nil, false, fmt.Errorf("read executions: %w", err)
	}
	return list, err != nil, nil
}

const (
	executeText = `SELECT x.id AS id, x.id, 'execute', NULL AS step, NULL, x.status, x.input_tokens, x.output_tokens, x.cached_tokens, x.reasoning_tokens,
  x.charged, 1, COALESCE(x.started_at, x.created_at), x.finished_at FROM executions x`

	modelText = `SELECT k.id, x.id, 'model', k.step, k.model, k.status, k.input_tokens, k.output_tokens, k.cached_tokens, k.reasoning_tokens,
  k.price, k.attempt, k.started_at, k.finished_at FROM execution_calls k JOIN executions x ON x.number = k.execution`
)

// Operations implements execution.ReadStore: the two kinds are read each by its
// own index, and put together.
func (s *Store) Operations(ctx context.Context, q execution.OperationQuery) ([]execution.Operation, error) {
	var runs, calls conditions
	runs.add("x.project_id = ?", q.ProjectID)
	calls.add("k.project_id = ?", q.ProjectID)
	calls.add("k.kind = ?", "model")
	if q.ExecutionID != "" {
		runs.add("x.id = ?", q.ExecutionID)
		calls.add("x.id = ?", q.ExecutionID)
	}
	if q.Before != "" {
		runs.add("x.id < ?", q.Before)
		calls.add("k.id < ?", q.Before)
	}
	var list []execution.Operation
	add := func(scan func(...any) error) error {
		o, err := scanOperation(scan)
		list = append(list, o)
		return err
	}
	if err := s.each(ctx, executeText+runs.page("x.id DESC", q.Limit), runs.args, add); err != nil {
		return nil, fmt.Errorf("read executions: %w", err)
	}
	if err := s.each(ctx, modelText+calls.page("k.id DESC", q.Limit), calls.args, add); err != nil {
		return nil, fmt.Errorf("read model calls: %w", err)
	}
	slices.SortFunc(list, func(a, b execution.Operation) int { return cmp.Compare(b.ID, a.ID) })
	return list[:min(q.Limit, len(list))], nil
}

func scanOperation(scan func(...any) error) (o execution.Operation, err error) {
	var step, model sql.NullString
	var started int64
	var finished sql.NullInt64
	err = scan(&o.ID, &o.ExecutionID, &o.Type, &step, &model, &o.Status, &o.Usage.Input, &o.Usage.Output, &o.Usage.Cached, &o.Usage.Reasoning,
		&o.Charged, &o.Attempt, &started, &finished)
	o.Step, o.Model = step.String, model.String
	o.StartedAt, o.FinishedAt = time.UnixMicro(started).UTC(), sqldb.TimeOf(finished)
	return o, err
}

// day is microseconds.
const day = int64(24 * time.Hour / time.Microsecond)

// Costs implements execution.ReadStore. Grouped by model, it sums up the calls
// of models; otherwise whole executions.
func (s *Store) Costs(ctx context.Context, q execution.CostQuery) ([]execution.Cost, error) {
	var c conditions
	c.add("x.project_id = ?", q.ProjectID)
	c.add("x.finished_at >= ?", q.From.UnixMicro())
	c.add("x.finished_at < ?", q.To.UnixMicro())
	groups := []string{"COALESCE(t.name, '')"}
	for _, one := range []struct {
		asked bool
		text  string
	}{
		{q.By.Day, "x.finished_at / " + strconv.FormatInt(day, 10)},
		{q.By.Customer, "COALESCE(c.external_id, '')"},
		{q.By.Flow, "f.slug"},
		{q.By.Model, "COALESCE(k.model, '')"},
	} {
		if one.asked {
			groups = append(groups, one.text)
		}
	}
	measures, tables := "COUNT(*), 0", costTables
	of, price := "x", "x.charged"
	if q.By.Model {
		c.add("k.kind = ?", "model")
		measures, tables = "COUNT(DISTINCT x.number), COUNT(*)", costTables+` JOIN execution_calls k ON k.execution = x.number`
		of, price = "k", "k.price"
	}
	for _, column := range []string{of + ".input_tokens", of + ".output_tokens", of + ".cached_tokens", of + ".reasoning_tokens", price} {
		measures += ", CAST(COALESCE(SUM(" + column + "), 0) AS bigint)"
	}
	by := strings.Join(groups, ", ")
	var list []execution.Cost
	text := "SELECT " + by + ", " + measures + tables + c.where() + " GROUP BY " + by + " ORDER BY " + by
	err := s.each(ctx, text, c.args, func(scan func(...any) error) error {
		one, err := scanCost(scan, q.By)
		list = append(list, one)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sum up executions: %w", err)
	}
	return list, nil
}

const costTables = executionTables + ` LEFT JOIN credit_types t ON t.id = h.credit_type_id`

func scanCost(scan func(...any) error, by execution.CostGroup) (c execution.Cost, err error) {
	var at int64
	dest := []any{&c.CreditType}
	for _, one := range []struct {
		asked bool
		to    any
	}{{by.Day, &at}, {by.Customer, &c.Customer}, {by.Flow, &c.Flow}, {by.Model, &c.Model}} {
		if one.asked {
			dest = append(dest, one.to)
		}
	}
	dest = append(dest, &c.Executions, &c.Calls, &c.Usage.Input, &c.Usage.Output, &c.Usage.Cached, &c.Usage.Reasoning, &c.Charged)
	err = scan(dest...)
	if by.Day {
		c.Day = time.UnixMicro(at * day).UTC()
	}
	return c, err
}
