package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/actionpulse/actionpulse/internal/eventstore"
	"github.com/actionpulse/actionpulse/internal/intake"
	"github.com/actionpulse/actionpulse/internal/record"
)

var source = intake.Source{Project: 1, KeyKind: record.KeyServer, Key: 1}

// do does one command.
func (p *path) do(ctx context.Context, words []string) (string, error) {
	switch words[0] {
	case "track": // event_id, anon_id, user_id or "-": how many duplicates
		return p.track(ctx, words[1], words[2], words[3])
	case "identify": // anon_id, user_id
		body, err := json.Marshal(map[string]any{"anon_id": words[1], "user_id": words[2], "traits": map[string]string{"a": "b"}})
		if err != nil {
			return "", err
		}
		return "ok", p.intake.Identify(ctx, source, body)
	case "erase": // user_id: the position
		position, err := p.intake.Erase(ctx, source.Project, record.Person{UserID: words[1]})
		return strconv.FormatUint(position, 10), err
	case "state": // user_id, position
		position, err := strconv.ParseUint(words[2], 10, 64)
		if err != nil {
			return "", err
		}
		state, err := p.stores.Events.ErasureState(ctx, source.Project, record.Person{UserID: words[1]}, position)
		return map[eventstore.ErasureState]string{
			eventstore.ErasureWaiting: "waiting", eventstore.ErasureApplied: "applied", eventstore.ErasureMissing: "missing",
		}[state], err
	case "settle": // until everything is stored
		return "ok", p.settle(ctx)
	case "retain": // rows that are older than the newest
		_, err := p.stores.Events.DeleteOlder(ctx, eventstore.Retention{
			Project: source.Project, Now: time.Now().UnixMilli(), Window: window.Milliseconds(),
		})
		return "ok", err
	case "rewrite":
		return "ok", p.stores.Events.Rewrite(ctx)
	case "purge":
		mark, err := p.stores.Events.Mark(ctx)
		if err != nil {
			return "", err
		}
		if err := p.stores.Intake.Trim(mark.Position); err != nil {
			return "", err
		}
		return "ok", p.stores.Intake.Purge(ctx)
	case "rows": // user_id: the ids of the rows
		return p.rows(ctx, record.Person{UserID: words[1]})
	case "usage":
		usage, err := p.stores.Events.Usage(ctx)
		return fmt.Sprintf("%+v", usage), err
	case "verify":
		report, err := p.stores.Verify(ctx)
		return fmt.Sprintf("%t %q", report.OK, report.Differences), err
	}
	return "", fmt.Errorf("unknown command %q", words)
}

func (p *path) track(ctx context.Context, id, anonID, userID string) (string, error) {
	item := map[string]any{"event_id": id, "event": "e", "anon_id": anonID}
	if userID != "-" {
		item["user_id"] = userID
	}
	body, err := json.Marshal(map[string]any{"events": []any{item}})
	if err != nil {
		return "", err
	}
	response, err := p.intake.Track(ctx, source, body)
	return strconv.Itoa(response.Duplicates), err
}

func (p *path) settle(ctx context.Context) error {
	for {
		mark, err := p.stores.Events.Mark(ctx)
		if err != nil || mark.Position >= p.stores.Intake.Durable() {
			return err
		}
		<-p.moved
	}
}

func (p *path) rows(ctx context.Context, person record.Person) (string, error) {
	ids := []string{}
	err := p.stores.Events.ExportPerson(ctx, source.Project, person, func(x eventstore.Exported) error {
		if x.Event != nil {
			ids = append(ids, uuid.UUID(x.Event.EventID).String())
		}
		return nil
	})
	return fmt.Sprint(ids), err
}
