package quota

import (
	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/fault"
)

// judge returns the refusal of an addition that comes when this much was added
// in its month; nil while anything is left of everything.
func (p *Plan) judge(t *total, month Month) error {
	if p.Events > 0 && t.Events >= p.Events {
		return p.usedUp(api.ResourceEvents, p.Events, month)
	}
	return p.judgeStorage(t, month)
}

// judgeStorage is judge for what adds bytes and no events.
func (p *Plan) judgeStorage(t *total, month Month) error {
	if p.Storage > 0 && t.Bytes+t.replays.bytes() >= p.Storage {
		return p.usedUp(api.ResourceStorage, p.Storage, month)
	}
	return nil
}

func (p *Plan) usedUp(resource api.Resource, limit int64, month Month) error {
	code, unit := api.CodeQuotaExceeded, "events"
	if p.Trial {
		code = api.CodeTrialQuotaExceeded
	}
	if resource == api.ResourceStorage {
		unit = "bytes of storage"
	}
	return fault.New(code, "the organization's quota of %d %s for %s is used up", limit, unit, month).
		With("resource", resource).With("limit", limit).With("resets_at", api.TimeText(month.End()))
}
