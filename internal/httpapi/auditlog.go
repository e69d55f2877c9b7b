package httpapi

import (
	"github.com/actionpulse/actionpulse/api"
	"github.com/actionpulse/actionpulse/internal/auditlog"
)

var listAuditLogOperation = operation{
	id: "listAuditLog", tag: tagAudit, summary: "List who changed what, latest first",
	description: "An entry is written in the transaction of the change that it tells of. It holds no secret and is never altered.",
	params:      pageParams(idParam("id", "The organization of the access token.")),
	replies:     replyOK("A page of entries.", api.List[api.AuditEntry]{}),
}

func (s *service) listAuditLog(x *exchange) (answer, error) {
	p, err := x.idPage()
	if err != nil {
		return answer{}, err
	}
	id, err := ownOrganization(x)
	if err != nil {
		return answer{}, err
	}
	all, err := s.AuditLog.List(x.r.Context(), id, p.after, p.limit+1)
	if err != nil {
		return answer{}, err
	}
	return pageAnswer(all, p.limit, auditEntryOf, func(e *auditlog.Entry) string { return e.ID })
}

// auditEntryOf is an entry as it is sent.
func auditEntryOf(e *auditlog.Entry) api.AuditEntry {
	details := e.Details
	if details == nil {
		details = map[string]string{}
	}
	return api.AuditEntry{
		ID: e.ID, At: api.TimeText(e.At), Action: string(e.Action),
		Actor: api.AuditActor{
			UserID: api.OptionalText(e.Actor.UserID), RequestID: api.OptionalText(e.Actor.RequestID), Address: api.OptionalText(e.Actor.Address),
		},
		Object:    api.AuditObject{Kind: e.Object.Kind, ID: e.Object.ID},
		ProjectID: api.OptionalText(e.ProjectID), Details: details,
	}
}
